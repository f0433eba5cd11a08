// choice.cc: see choice.h.
#include "choice.h"

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>

#include "sdk/plugin/choice.h"

namespace vulkan {
namespace {

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
    if (!has) return std::string("lacks the feature ") + name;
  return "";
}

bool IsSoftware(const VkPhysicalDeviceProperties& p) { return p.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU; }

bool HasSubgroups(VkPhysicalDevice device) {
  auto ids =
      Typed<VkPhysicalDeviceVulkan11Properties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES);
  auto properties = Typed<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
  properties.pNext = &ids;
  vk().GetPhysicalDeviceProperties2(device, &properties);
  const VkSubgroupFeatureFlags needed = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT |
                                        VK_SUBGROUP_FEATURE_BALLOT_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
  return !settings().no_subgroups && (ids.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
         (ids.subgroupSupportedOperations & needed) == needed;
}

keel::plugin::Identity IdentityOf(const Api& api, VkPhysicalDevice device) {
  auto ids = Typed<VkPhysicalDeviceIDProperties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES);
  auto properties = Typed<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
  properties.pNext = &ids;
  api.GetPhysicalDeviceProperties2(device, &properties);
  return {properties.properties.deviceName, keel::plugin::hexadecimal(ids.deviceUUID, VK_UUID_SIZE)};
}

// Keeps the devices that settings().devices selects.
std::string Select(Api* api) {
  const std::vector<VkPhysicalDevice> found = std::exchange(api->devices, {});
  std::vector<keel::plugin::Identity> known;
  for (VkPhysicalDevice device : found) known.push_back(IdentityOf(*api, device));
  std::string why;
  for (size_t i : keel::plugin::choose_devices(settings().devices, "KEEL_VULKAN_DEVICES", known, &why))
    api->devices.push_back(found[i]);
  return why;
}

}  // namespace

Features::Features(const Api& api, VkPhysicalDevice device) : Features() {
  api.GetPhysicalDeviceFeatures2(device, &all);
}

std::string ListDevices(Api* api) {
  uint32_t n = 0;
  VkResult result = api->EnumeratePhysicalDevices(api->instance, &n, nullptr);
  std::vector<VkPhysicalDevice> found(n), software;
  if (!result) result = api->EnumeratePhysicalDevices(api->instance, &n, found.data());
  if (result) return "vkEnumeratePhysicalDevices gave " + std::to_string(result);
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
  if (!api->devices.empty()) return Select(api);
  return n ? why : "libvulkan found no driver with a device; install the GPU's Vulkan driver";
}

Optional OptionalFeatures(VkPhysicalDevice device) {
  const Features f(vk(), device);
  return {f.all.features.shaderFloat64 == VK_TRUE,
          f.v12.shaderFloat16 == VK_TRUE,
          f.v12.storageBuffer8BitAccess == VK_TRUE,
          f.v11.storageBuffer16BitAccess == VK_TRUE,
          f.v12.shaderInt8 == VK_TRUE,
          f.all.features.shaderInt16 == VK_TRUE,
          HasSubgroups(device),
          f.HaveMatrices() ? FindMatrices(device) : Matrices{}};
}

const char* Lack(const Optional& has, bool f64, bool storage8, bool storage16) {
  if (f64 && !has.f64) return "the driver has no shaderFloat64";
  if (storage8 && !has.storage8) return "the driver has no storageBuffer8BitAccess";
  if (storage16 && !has.storage16) return "the driver has no storageBuffer16BitAccess";
  return nullptr;
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
  auto sizes = Typed<VkPhysicalDeviceMaintenance4Properties>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES);
  properties.pNext = &ids;
  ids.pNext = &sizes;
  vk().GetPhysicalDeviceProperties2(device, &properties);
  VkPhysicalDeviceMemoryProperties memory;
  vk().GetPhysicalDeviceMemoryProperties(device, &memory);
  for (uint32_t heap = 0; heap < memory.memoryHeapCount; heap++)
    if (memory.memoryHeaps[heap].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
      out->memory = std::max(out->memory, memory.memoryHeaps[heap].size);
  out->dl_type = 7;
  if (IsSoftware(properties.properties)) out->flags = KEEL_DEVICE_SOFTWARE;
  out->max_segment = std::min(ids.maxMemoryAllocationSize, sizes.maxBufferSize);
  std::string_view(properties.properties.deviceName).copy(out->description, sizeof out->description - 1);
  std::copy_n(ids.deviceUUID, sizeof out->uuid, out->uuid);
  const Optional has = OptionalFeatures(device);
  const uint32_t version = properties.properties.apiVersion;
  std::snprintf(out->capabilities, sizeof out->capabilities, "vulkan %u.%u, subgroups of %u%s%s%s",
                VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version), ids.subgroupSize,
                has.f16 ? ", f16" : "", has.f64 ? ", f64" : "",
                has.matrices.rows ? ", cooperative matrices" : "");
}

}  // namespace vulkan
