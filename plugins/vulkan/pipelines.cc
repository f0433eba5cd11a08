// pipelines.cc: compute pipelines. The push constant of a launch is the address of its
// parameters (launch.h); clock.comp has two numbers.
#include "cache.h"

namespace vulkan {
namespace {

keel_rc Create(keel_dev d, Code code, const Constants& constants, VkPipeline* out) {
  auto module_info = Typed<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
  const std::vector<uint32_t> words =
      WithFloatModes(code.words, code.bytes / sizeof(uint32_t), d->has.float_modes);
  module_info.codeSize = sizeof(uint32_t) * words.size();
  module_info.pCode = words.data();
  VkShaderModule module;
  VULKAN_TRY(d, CreateShaderModule, d->device, &module_info, nullptr, &module);
  std::vector<VkSpecializationMapEntry> entries;
  for (uint32_t i = 0; i < constants.size(); i++) entries.push_back({i, 4 * i, 4});
  const VkSpecializationInfo special = {static_cast<uint32_t>(entries.size()), entries.data(),
                                        4 * constants.size(), constants.data()};
  auto info = Typed<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
  info.layout = d->layout;
  info.stage = Typed<VkPipelineShaderStageCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO);
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &special;
  auto subgroup = Typed<VkPipelineShaderStageRequiredSubgroupSizeCreateInfo>(
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO);
  subgroup.requiredSubgroupSize = code.subgroup;
  if (code.subgroup) {
    info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    info.stage.pNext = &subgroup;
  }
  const VkResult made = vk().CreateComputePipelines(d->device, d->cache, 1, &info, nullptr, out);
  vk().DestroyShaderModule(d->device, module, nullptr);
  if (keel_rc rc = d->Check(made, "vkCreateComputePipelines")) return rc;
  if (d->pipelines_made++ == kPipelinesBetweenWrites) WriteCache(d);
  return KEEL_OK;
}

}  // namespace

keel_rc PipelinesOpen(keel_dev d) {
  const VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes};
  auto layout = Typed<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &push;
  VULKAN_TRY(d, CreatePipelineLayout, d->device, &layout, nullptr, &d->layout);
  auto cache = Typed<VkPipelineCacheCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO);
  const std::string data = ReadCache(d);
  cache.initialDataSize = data.size();
  cache.pInitialData = data.data();
  VULKAN_TRY(d, CreatePipelineCache, d->device, &cache, nullptr, &d->cache);
  WriteCacheAtExit(d);
  return KEEL_OK;
}

void PipelinesClose(keel_dev d) {
  ForgetCacheAtExit(d);
  if (d->cache) WriteCache(d);
  for (auto& [key, pipeline] : d->pipelines) vk().DestroyPipeline(d->device, pipeline, nullptr);
  for (auto& [key, pipeline] : d->generated) vk().DestroyPipeline(d->device, pipeline, nullptr);
  vk().DestroyPipelineCache(d->device, d->cache, nullptr);
  vk().DestroyPipelineLayout(d->device, d->layout, nullptr);
}

}  // namespace vulkan

keel_rc keel_dev_s::Pipeline(vulkan::Code code, const vulkan::Constants& constants, VkPipeline* out) {
  std::lock_guard lock(compiling);
  VkPipeline& made = pipelines[{code.words, constants}];
  if (!made)
    if (keel_rc rc = vulkan::Create(this, code, constants, &made)) return rc;
  *out = made;
  return KEEL_OK;
}

keel_rc keel_dev_s::GeneratedPipeline(const vulkan::GeneratedKey& key, const vulkan::Generate& make,
                                      VkPipeline* out) {
  std::lock_guard lock(compiling);
  VkPipeline& made = generated[key];
  if (!made) {
    std::vector<uint32_t> words;
    if (keel_rc rc = make(&words)) return rc;
    if (keel_rc rc = vulkan::Create(this, {words.data(), 4 * words.size()}, {}, &made)) return rc;
  }
  *out = made;
  return KEEL_OK;
}
