// shaders.cc: compute pipelines, made from the shaders of this folder when an op is first prepared.
#include <cstdint>

#include "device.h"
#include "elementwise.h"
#include "gather.h"
#include "matmul.h"
#include "reduce.h"

namespace sketch {
namespace {

struct Code {
  const uint32_t* words;
  size_t bytes;
};
constexpr Code kCode[kShaders] = {{spirv_elementwise, sizeof spirv_elementwise},
                                  {spirv_matmul, sizeof spirv_matmul},
                                  {spirv_reduce, sizeof spirv_reduce},
                                  {spirv_gather, sizeof spirv_gather}};

}  // namespace

keel_rc CompileShaders(keel_dev d) {
  const VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes};
  auto layout = Typed<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &push;
  SKETCH_TRY(d->host, vulkan().CreatePipelineLayout(d->device, &layout, nullptr, &d->layout));
  for (int shader = 0; shader < kShaders; shader++) {
    auto module = Typed<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
    module.codeSize = kCode[shader].bytes;
    module.pCode = kCode[shader].words;
    SKETCH_TRY(d->host, vulkan().CreateShaderModule(d->device, &module, nullptr, &d->shaders[shader]));
  }
  return KEEL_OK;
}

void CloseShaders(keel_dev d) {
  for (auto& [key, pipeline] : d->pipelines) vulkan().DestroyPipeline(d->device, pipeline, nullptr);
  for (VkShaderModule shader : d->shaders) vulkan().DestroyShaderModule(d->device, shader, nullptr);
  vulkan().DestroyPipelineLayout(d->device, d->layout, nullptr);
}

}  // namespace sketch

keel_rc keel_dev_s::Pipeline(sketch::Shader shader, uint32_t op, VkPipeline* out) {
  using namespace sketch;
  std::lock_guard lock(compiling);
  VkPipeline& made = pipelines[{shader, op}];
  if (!made) {
    const VkSpecializationMapEntry entry = {0, 0, sizeof op};
    const VkSpecializationInfo constants = {1, &entry, sizeof op, &op};
    auto info = Typed<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
    info.layout = layout;
    info.stage = Typed<VkPipelineShaderStageCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO);
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.module = shaders[shader];
    info.stage.pName = "main";
    info.stage.pSpecializationInfo = &constants;
    SKETCH_TRY(host, vulkan().CreateComputePipelines(device, nullptr, 1, &info, nullptr, &made));
  }
  *out = made;
  return KEEL_OK;
}
