// choice.cc: see choice.h.
#include "choice.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

namespace vulkan {
namespace {

// The features of a device in one chain.
struct Features {
  VkPhysicalDeviceVulkan13Features v13 =
      Typed<VkPhysicalDeviceVulkan13Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES);
  VkPhysicalDeviceVulkan12Features v12 =
      Typed<VkPhysicalDeviceVulkan12Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  VkPhysicalDeviceVulkan11Features v11 =
      Typed<VkPhysicalDeviceVulkan11Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES);
  VkPhysicalDeviceFeatures2 all =
      Typed<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
  Features(const Api& api, VkPhysicalDevice device) {
    all.pNext = &v11;
    v11.pNext = &v12;
    v12.pNext = &v13;
    api.GetPhysicalDeviceFeatures2(device, &all);
  }
  Features(const Features&) = delete;
};

// The first thing that the device lacks, or "".
std::string Lacks(const Api& api, VkPhysicalDevice device, const VkPhysicalDeviceProperties& properties) {
  if (properties.apiVersion < VK_API_VERSION_1_3)
    return "has Vulkan " + std::to_string(VK_API_VERSION_MAJOR(properties.apiVersion)) + "." +
           std::to_string(VK_API_VERSION_MINOR(properties.apiVersion)) + "; expected 1.3 or newer";
  if (ChooseFamilies(api, device).compute == UINT32_MAX) return "has no compute queue";
  const Features f(api, device);
  const std::pair<VkBool32, const char*> needed[] = {
      {f.all.features.shaderInt64, "shaderInt64"},    {f.v12.bufferDeviceAddress, "bufferDeviceAddress"},
      {f.v12.timelineSemaphore, "timelineSemaphore"}, {f.v12.scalarBlockLayout, "scalarBlockLayout"},
      {f.v13.synchronization2, "synchronization2"},   {f.v13.maintenance4, "maintenance4"}};
  for (auto [has, name] : needed)
    if (!has) return std::string("has not the feature ") + name;
  return "";
}

bool IsSoftware(const VkPhysicalDeviceProperties& p) { return p.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU; }

}  // namespace

std::string ListDevices(Api* api) {
  uint32_t n = 0;
  api->EnumeratePhysicalDevices(api->instance, &n, nullptr);
  std::vector<VkPhysicalDevice> found(n), software;
  api->EnumeratePhysicalDevices(api->instance, &n, found.data());
  std::string why;
  for (VkPhysicalDevice device : found) {
    VkPhysicalDeviceProperties properties;
    api->GetPhysicalDeviceProperties(device, &properties);
    std::string lack = Lacks(*api, device, properties);
    if (lack.empty())
      (IsSoftware(properties) ? software : api->devices).push_back(device);
    else
      why += (why.empty() ? "" : "; ") + (properties.deviceName + (" " + lack));
  }
  api->devices.insert(api->devices.end(), software.begin(), software.end());
  if (!api->devices.empty()) return "";
  return n ? why : "libvulkan found no driver with a device; install the GPU's Vulkan driver";
}

Optional OptionalFeatures(VkPhysicalDevice device) {
  const Features f(vk(), device);
  return {f.all.features.shaderFloat64 == VK_TRUE,
          f.v12.shaderFloat16 == VK_TRUE,
          f.v12.storageBuffer8BitAccess == VK_TRUE,
          f.v11.storageBuffer16BitAccess == VK_TRUE,
          f.v12.shaderInt8 == VK_TRUE,
          f.all.features.shaderInt16 == VK_TRUE};
}

Families ChooseFamilies(const Api& api, VkPhysicalDevice device) {
  uint32_t n = 0;
  api.GetPhysicalDeviceQueueFamilyProperties(device, &n, nullptr);
  std::vector<VkQueueFamilyProperties> all(n);
  api.GetPhysicalDeviceQueueFamilyProperties(device, &n, all.data());
  Families chosen;
  for (uint32_t i = 0; i < n; i++) {
    const bool computes = all[i].queueFlags & VK_QUEUE_COMPUTE_BIT;
    if (computes && chosen.compute == UINT32_MAX) chosen.compute = i;
    if (!computes && (all[i].queueFlags & VK_QUEUE_TRANSFER_BIT) && chosen.transfer == UINT32_MAX)
      chosen.transfer = i;
  }
  if (chosen.compute == UINT32_MAX) return chosen;
  if (settings().one_queue || chosen.transfer == UINT32_MAX) {
    chosen.transfer = chosen.compute;
    chosen.transfer_index = !settings().one_queue && all[chosen.compute].queueCount > 1;
  }
  return chosen;
}

void Describe(VkPhysicalDevice device, keel_device_info* out) {
  auto ids =
      Typed<VkPhysicalDeviceVulkan11Properties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES);
  auto properties = Typed<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
  properties.pNext = &ids;
  vk().GetPhysicalDeviceProperties2(device, &properties);
  VkPhysicalDeviceMemoryProperties memory;
  vk().GetPhysicalDeviceMemoryProperties(device, &memory);
  for (uint32_t heap = 0; heap < memory.memoryHeapCount; heap++)
    if (memory.memoryHeaps[heap].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
      out->memory = std::max(out->memory, memory.memoryHeaps[heap].size);
  out->dl_type = 7;
  if (IsSoftware(properties.properties)) out->flags = KEEL_DEVICE_SOFTWARE;
  out->max_segment = ids.maxMemoryAllocationSize;
  std::string_view(properties.properties.deviceName).copy(out->description, sizeof out->description - 1);
  std::copy_n(ids.deviceUUID, sizeof out->uuid, out->uuid);
  const Optional has = OptionalFeatures(device);
  const uint32_t version = properties.properties.apiVersion;
  std::snprintf(out->capabilities, sizeof out->capabilities, "vulkan %u.%u, subgroups of %u%s%s",
                VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version), ids.subgroupSize,
                has.f16 ? ", f16" : "", has.f64 ? ", f64" : "");
}

}  // namespace vulkan
