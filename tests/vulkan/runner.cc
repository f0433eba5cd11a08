// runner.cc: see runner.h.
#include "runner.h"

#include <dlfcn.h>

#include <cstring>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

namespace vulkan_test {
namespace {

// clang-format off
#define VULKAN_FUNCTIONS(F) \
  F(EnumeratePhysicalDevices) F(GetPhysicalDeviceProperties) F(GetPhysicalDeviceMemoryProperties) \
  F(CreateDevice) F(GetDeviceQueue) F(AllocateMemory) F(BindBufferMemory) F(CreateBuffer) \
  F(GetBufferMemoryRequirements) F(MapMemory) F(GetBufferDeviceAddress) F(CreateShaderModule) \
  F(DestroyShaderModule) F(CreatePipelineLayout) F(CreateComputePipelines) F(DestroyPipeline) \
  F(CreateCommandPool) F(AllocateCommandBuffers) F(BeginCommandBuffer) F(EndCommandBuffer) \
  F(CmdBindPipeline) F(CmdPushConstants) F(CmdDispatch) F(QueueSubmit) F(QueueWaitIdle)
// clang-format on

constexpr uint64_t kBytes = 32 << 20;
constexpr uint32_t kPushBytes = 128;
constexpr char kGuard = 0x6b;

struct Device {
#define MEMBER(name) PFN_vk##name name = nullptr;
  VULKAN_FUNCTIONS(MEMBER)
#undef MEMBER
  std::string why;
  VkPhysicalDevice chip = nullptr;
  VkDevice device = nullptr;
  VkQueue queue = nullptr;
  VkPipelineLayout layout = nullptr;
  VkCommandBuffer commands = nullptr;
  VkBuffer buffer = nullptr;
  VkDeviceMemory memory = nullptr;
  char* mapped = nullptr;
  uint64_t address = 0;

  Device() { why = Open(); }
  std::string Open() {
    void* library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return "no libvulkan.so.1";
    auto find = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
    auto create = reinterpret_cast<PFN_vkCreateInstance>(find(nullptr, "vkCreateInstance"));
    VkApplicationInfo app = {};
    app.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    app.apiVersion = VK_API_VERSION_1_3;
    VkInstanceCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    info.pApplicationInfo = &app;
    VkInstance instance;
    if (create(&info, nullptr, &instance)) return "vkCreateInstance failed: no driver";
#define LOAD(name)                                                   \
  name = reinterpret_cast<PFN_vk##name>(find(instance, "vk" #name)); \
  if (!name) return "libvulkan has no vk" #name;
    VULKAN_FUNCTIONS(LOAD)
#undef LOAD
    uint32_t n = 1;
    EnumeratePhysicalDevices(instance, &n, &chip);
    if (n == 0) return "no Vulkan device";
    return OpenDevice() ? "the device lacks Vulkan 1.3 with 64-bit types or small storage" : OpenBuffer();
  }
  int OpenDevice() {
    VkPhysicalDeviceVulkan11Features v11 = {};
    v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    v11.storageBuffer16BitAccess = 1;
    VkPhysicalDeviceVulkan12Features v12 = {};
    v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    v12.pNext = &v11;
    v12.storageBuffer8BitAccess = v12.bufferDeviceAddress = 1;
    VkPhysicalDeviceFeatures features = {};
    features.shaderInt64 = features.shaderFloat64 = 1;
    const float priority = 1;
    VkDeviceQueueCreateInfo queues = {};
    queues.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queues.queueCount = 1;
    queues.pQueuePriorities = &priority;
    VkDeviceCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    info.pNext = &v12;
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queues;
    info.pEnabledFeatures = &features;
    if (CreateDevice(chip, &info, nullptr, &device)) return 1;
    GetDeviceQueue(device, 0, 0, &queue);
    VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes};
    VkPipelineLayoutCreateInfo shape = {};
    shape.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    shape.pushConstantRangeCount = 1;
    shape.pPushConstantRanges = &range;
    VkCommandPoolCreateInfo pool_info = {};
    pool_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    pool_info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    VkCommandPool pool;
    if (CreatePipelineLayout(device, &shape, nullptr, &layout) ||
        CreateCommandPool(device, &pool_info, nullptr, &pool))
      return 1;
    VkCommandBufferAllocateInfo one = {};
    one.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    one.commandPool = pool;
    one.commandBufferCount = 1;
    return AllocateCommandBuffers(device, &one, &commands);
  }
  std::string OpenBuffer() {
    VkBufferCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.size = kBytes;
    info.usage = VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT | VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
    CreateBuffer(device, &info, nullptr, &buffer);
    VkMemoryRequirements needs;
    GetBufferMemoryRequirements(device, buffer, &needs);
    VkPhysicalDeviceMemoryProperties types;
    GetPhysicalDeviceMemoryProperties(chip, &types);
    constexpr VkMemoryPropertyFlags kWanted =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    uint32_t type = 0;
    while (type < types.memoryTypeCount && !((needs.memoryTypeBits >> type & 1) &&
                                             (types.memoryTypes[type].propertyFlags & kWanted) == kWanted))
      type++;
    VkMemoryAllocateFlagsInfo flags = {};
    flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    VkMemoryAllocateInfo block = {};
    block.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    block.pNext = &flags;
    block.allocationSize = needs.size;
    block.memoryTypeIndex = type;
    if (AllocateMemory(device, &block, nullptr, &memory) || BindBufferMemory(device, buffer, memory, 0) ||
        MapMemory(device, memory, 0, kBytes, 0, reinterpret_cast<void**>(&mapped)))
      return "no host-visible memory";
    VkBufferDeviceAddressInfo where = {};
    where.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO;
    where.buffer = buffer;
    address = GetBufferDeviceAddress(device, &where);
    return "";
  }

  std::string Dispatch(const std::vector<uint32_t>& words, uint32_t groups,
                       const std::vector<uint64_t>& push) {
    VkShaderModuleCreateInfo code = {};
    code.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    code.codeSize = words.size() * 4;
    code.pCode = words.data();
    VkShaderModule shader;
    if (CreateShaderModule(device, &code, nullptr, &shader)) return "vkCreateShaderModule failed";
    VkComputePipelineCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
    info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.module = shader;
    info.stage.pName = "main";
    info.layout = layout;
    VkPipeline pipeline;
    if (CreateComputePipelines(device, nullptr, 1, &info, nullptr, &pipeline))
      return "vkCreateComputePipelines failed";
    VkCommandBufferBeginInfo begin = {};
    begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    BeginCommandBuffer(commands, &begin);
    CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    CmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, static_cast<uint32_t>(push.size() * 8),
                     push.data());
    CmdDispatch(commands, groups, 1, 1);
    EndCommandBuffer(commands);
    VkSubmitInfo submit = {};
    submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands;
    const bool bad = QueueSubmit(queue, 1, &submit, nullptr) || QueueWaitIdle(queue);
    DestroyPipeline(device, pipeline, nullptr);
    DestroyShaderModule(device, shader, nullptr);
    return bad ? "the device is lost" : "";
  }
};

Device& TheDevice() {
  static Device* device = new Device;  // drivers have threads of their own: never destroyed
  return *device;
}

}  // namespace

const std::string& WhyNot() { return TheDevice().why; }

bool SharesAddresses() {
  VkPhysicalDeviceProperties properties;
  TheDevice().GetPhysicalDeviceProperties(TheDevice().chip, &properties);
  return properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
}

std::string RunShader(const std::vector<uint32_t>& words, uint32_t groups, std::vector<std::string>* buffers,
                      const Fill& fill) {
  Device& d = TheDevice();
  std::vector<uint64_t> offsets, addresses;
  uint64_t end = 64;
  for (const std::string& b : *buffers) {
    offsets.push_back(end), addresses.push_back(d.address + end);
    end += (b.size() + 63) / 64 * 64 + 64;
  }
  if (end > kBytes) return "the buffers are too large for this test";
  const std::vector<uint64_t> push = fill(addresses);
  std::memset(d.mapped, kGuard, end);
  for (size_t i = 0; i < buffers->size(); i++)
    std::memcpy(d.mapped + offsets[i], (*buffers)[i].data(), (*buffers)[i].size());
  const std::string bad = d.Dispatch(words, groups, push);
  uint64_t at = 0;
  for (size_t i = 0; i <= buffers->size() && bad.empty(); i++) {
    const uint64_t next = i < buffers->size() ? offsets[i] : end;
    for (; at < next; at++)
      if (d.mapped[at] != kGuard) return "a guard before buffer " + std::to_string(i) + " was overwritten";
    if (i == buffers->size()) break;
    (*buffers)[i].assign(d.mapped + at, (*buffers)[i].size());
    at += (*buffers)[i].size();
  }
  return bad;
}

}  // namespace vulkan_test
