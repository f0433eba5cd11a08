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

bool HasSubgroups(const Properties& p) {
  const VkSubgroupFeatureFlags needed = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT |
                                        VK_SUBGROUP_FEATURE_BALLOT_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
  return !settings().no_subgroups && (p.v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
         (p.v11.subgroupSupportedOperations & needed) == needed;
}

keel::plugin::Identity IdentityOf(const Api& api, VkPhysicalDevice device) {
  const Properties p(api, device);
  return {p.all.properties.deviceName, keel::plugin::hexadecimal(p.v11.deviceUUID, VK_UUID_SIZE)};
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
  const Properties p(vk(), device);
  return {f.all.features.shaderFloat64 == VK_TRUE,
          f.v12.shaderFloat16 == VK_TRUE,
          f.v12.storageBuffer8BitAccess == VK_TRUE,
          f.v11.storageBuffer16BitAccess == VK_TRUE,
          f.v12.shaderInt8 == VK_TRUE,
          f.all.features.shaderInt16 == VK_TRUE,
          HasSubgroups(p),
          f.HaveMatrices() ? FindMatrices(device, p) : Matrices{},
          FloatModes(p.v12)};
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
  const Properties p(vk(), device);
  VkPhysicalDeviceMemoryProperties memory;
  vk().GetPhysicalDeviceMemoryProperties(device, &memory);
  for (uint32_t heap = 0; heap < memory.memoryHeapCount; heap++)
    if (memory.memoryHeaps[heap].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
      out->memory = std::max(out->memory, memory.memoryHeaps[heap].size);
  out->dl_type = 7;
  if (IsSoftware(p.all.properties)) out->flags = KEEL_DEVICE_SOFTWARE;
  if (p.all.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU)
    out->flags = KEEL_DEVICE_INTEGRATED;
  out->max_segment = std::min(p.v11.maxMemoryAllocationSize, p.v13.maxBufferSize);
  std::string_view(p.all.properties.deviceName).copy(out->description, sizeof out->description - 1);
  std::copy_n(p.v11.deviceUUID, sizeof out->uuid, out->uuid);
  const Optional has = OptionalFeatures(device);
  std::snprintf(out->capabilities, sizeof out->capabilities, "vulkan %u.%u, subgroups of %u%s%s%s",
                VK_API_VERSION_MAJOR(p.all.properties.apiVersion),
                VK_API_VERSION_MINOR(p.all.properties.apiVersion), p.v11.subgroupSize, has.f16 ? ", f16" : "",
                has.f64 ? ", f64" : "", has.matrices.rows ? ", cooperative matrices" : "");
}

}  // namespace vulkan
