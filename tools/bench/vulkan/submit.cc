// submit.cc: host time of vkQueueSubmit2 with a command buffer that does nothing, on the first device: what a
// driver needs at least for a run. bench_device measures the runs of the plugin vulkan. Usage: bench_submit
// [instance]; with "instance", it only creates an instance, for times.py. See ../README.md.
#include <vulkan/vulkan.h>

#include "../hot/harness.h"

namespace {

VkInstance instance;

template <typename T>
T Typed(VkStructureType type) {
  T made{};
  made.sType = type;
  return made;
}

void CreateInstance() {
  auto app = Typed<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  app.apiVersion = VK_API_VERSION_1_3;
  auto info = Typed<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
  info.pApplicationInfo = &app;
  if (vkCreateInstance(&info, nullptr, &instance)) std::abort();
}

VkDevice OpenDevice() {
  uint32_t one = 1;
  VkPhysicalDevice physical;
  vkEnumeratePhysicalDevices(instance, &one, &physical);
  auto features =
      Typed<VkPhysicalDeviceVulkan13Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES);
  auto timelines =
      Typed<VkPhysicalDeviceVulkan12Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  features.synchronization2 = timelines.timelineSemaphore = VK_TRUE;
  features.pNext = &timelines;
  const float priority = 1;
  auto queue = Typed<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  auto device = Typed<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
  device.pNext = &features;
  device.queueCreateInfoCount = 1;
  device.pQueueCreateInfos = &queue;
  VkDevice made = nullptr;
  vkCreateDevice(physical, &device, nullptr, &made);
  return made;
}

VkCommandBuffer Empty(VkDevice device) {
  auto pool_info = Typed<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  VkCommandPool pool;
  vkCreateCommandPool(device, &pool_info, nullptr, &pool);
  auto info = Typed<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
  info.commandPool = pool;
  info.commandBufferCount = 1;
  VkCommandBuffer commands;
  vkAllocateCommandBuffers(device, &info, &commands);
  auto begin = Typed<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
  vkBeginCommandBuffer(commands, &begin);
  vkEndCommandBuffer(commands);
  return commands;
}

VkSemaphore Timeline(VkDevice device) {
  auto type = Typed<VkSemaphoreTypeCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  auto info = Typed<VkSemaphoreCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO);
  info.pNext = &type;
  VkSemaphore made;
  vkCreateSemaphore(device, &info, nullptr, &made);
  return made;
}

}  // namespace

int main(int argc, char** argv) {
  CreateInstance();
  if (argc > 1 && std::string(argv[1]) == "instance") return 0;
  VkDevice device = OpenDevice();
  VkQueue queue;
  vkGetDeviceQueue(device, 0, 0, &queue);
  auto commands = Typed<VkCommandBufferSubmitInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO);
  commands.commandBuffer = Empty(device);
  auto signal = Typed<VkSemaphoreSubmitInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO);
  signal.semaphore = Timeline(device);
  signal.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
  auto batch = Typed<VkSubmitInfo2>(VK_STRUCTURE_TYPE_SUBMIT_INFO_2);
  batch.commandBufferInfoCount = batch.signalSemaphoreInfoCount = 1;
  batch.pCommandBufferInfos = &commands;
  batch.pSignalSemaphoreInfos = &signal;
  hot::processor_time_only = true;
  const hot::Figure f = hot::Measure("an empty vkQueueSubmit2", 0, 1, [&] {
    signal.value++;
    if (vkQueueSubmit2(queue, 1, &batch, nullptr)) std::abort();
  });
  std::printf("%-36s %9.1f ns %9.1f %9.1f\n", f.name.c_str(), f.median, f.low, f.high);
  vkDeviceWaitIdle(device);
}
