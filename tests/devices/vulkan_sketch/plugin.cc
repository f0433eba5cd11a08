// plugin.cc: the device "vulkan-sketch": every driver of Vulkan 1.3, lavapipe among them.
#include <algorithm>
#include <cstdio>
#include <string_view>

#include "device.h"

namespace sketch {
namespace {

uint32_t Count(const keel_host* host) {
  if (!vulkan().why.empty()) host->fail(KEEL_UNAVAILABLE, vulkan().why.c_str());
  return static_cast<uint32_t>(vulkan().devices.size());
}

keel_rc Info(const keel_host*, uint32_t i, keel_device_info* out) {
  auto limits =
      Typed<VkPhysicalDeviceVulkan11Properties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES);
  auto properties = Typed<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
  properties.pNext = &limits;
  vulkan().GetPhysicalDeviceProperties2(vulkan().devices[i], &properties);
  VkPhysicalDeviceMemoryProperties memory;
  vulkan().GetPhysicalDeviceMemoryProperties(vulkan().devices[i], &memory);
  for (uint32_t heap = 0; heap < memory.memoryHeapCount; heap++)
    if (memory.memoryHeaps[heap].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
      out->memory = std::max(out->memory, memory.memoryHeaps[heap].size);
  out->dl_type = 7;
  out->dl_id = static_cast<int32_t>(i);
  out->max_segment = limits.maxMemoryAllocationSize;
  std::string_view(properties.properties.deviceName).copy(out->description, sizeof out->description - 1);
  std::copy_n(limits.deviceUUID, sizeof out->uuid, out->uuid);
  const uint32_t version = properties.properties.apiVersion;
  std::snprintf(out->capabilities, sizeof out->capabilities, "vulkan %u.%u, subgroups of %u",
                VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version), limits.subgroupSize);
  return KEEL_OK;
}

// A family of queues that compute.
bool FindFamily(keel_dev d) {
  uint32_t n = 0;
  vulkan().GetPhysicalDeviceQueueFamilyProperties(d->physical, &n, nullptr);
  std::vector<VkQueueFamilyProperties> all(n);
  vulkan().GetPhysicalDeviceQueueFamilyProperties(d->physical, &n, all.data());
  auto found = std::find_if(all.begin(), all.end(),
                            [](const auto& family) { return family.queueFlags & VK_QUEUE_COMPUTE_BIT; });
  d->family = static_cast<uint32_t>(found - all.begin());
  return found != all.end();
}

keel_rc CreateDevice(keel_dev d) {
  const float priority = 1;
  auto queue = Typed<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queue.queueFamilyIndex = d->family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  auto v13 = Typed<VkPhysicalDeviceVulkan13Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES);
  v13.synchronization2 = v13.maintenance4 = VK_TRUE;  // every 1.3 has them; the shaders need the second
  auto v12 = Typed<VkPhysicalDeviceVulkan12Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  v12.timelineSemaphore = v12.bufferDeviceAddress = v12.scalarBlockLayout = VK_TRUE;
  v12.pNext = &v13;
  auto features = Typed<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
  features.features.shaderInt64 = VK_TRUE;
  features.pNext = &v12;
  auto info = Typed<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
  info.pNext = &features;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  SKETCH_TRY(d->host, vulkan().CreateDevice(d->physical, &info, nullptr, &d->device));
  vulkan().GetDeviceQueue(d->device, d->family, 0, &d->queue);
  return KEEL_OK;
}

void Close(keel_dev d) {
  if (d->device) {
    CloseShaders(d);
    vulkan().DestroyDevice(d->device, nullptr);
  }
  delete d;
}

keel_rc Open(const keel_host* host, uint32_t i, const keel_kv*, uint32_t, keel_dev* out) {
  auto* d = new keel_dev_s;
  d->host = host;
  d->physical = vulkan().devices[i];
  keel_rc rc = FindFamily(d) ? CreateDevice(d) : host->fail(KEEL_UNAVAILABLE, "the driver computes nothing");
  if (!rc) rc = ChooseMemory(d);
  if (!rc) rc = CompileShaders(d);
  if (rc) return Close(d), rc;
  *out = d;
  return KEEL_OK;
}

constexpr keel_device kDevice = {sizeof(keel_device),
                                 0,
                                 Count,
                                 Info,
                                 Open,
                                 Close,
                                 SegmentAlloc,
                                 SegmentFree,
                                 QueueOpen,
                                 QueueClose,
                                 Copy,
                                 Fill,
                                 Submit,
                                 QueueWait,
                                 HostWait,
                                 Query,
                                 nullptr,
                                 nullptr,
                                 nullptr,
                                 nullptr,
                                 nullptr,
                                 nullptr,
                                 nullptr,
                                 nullptr,
                                 nullptr,
                                 nullptr};

const keel_plugin& Describe() {
  static const keel_plugin plugin = {KEEL_PLUGIN_HEADER,
                                     "vulkan-sketch",
                                     "0.1.0",
                                     "A dozen ops on any driver of Vulkan 1.3, for tests",
                                     &kDevice,
                                     Impls().data(),
                                     static_cast<uint32_t>(Impls().size()),
                                     sizeof(keel_impl),
                                     nullptr,
                                     nullptr,
                                     0,
                                     0,
                                     nullptr,
                                     0,
                                     0};
  return plugin;
}

}  // namespace
}  // namespace sketch

KEEL_PLUGIN(sketch::Describe())
