// choice.h: which devices of the instance are usable, and their description.
#ifndef KEEL_PLUGINS_VULKAN_CHOICE_H
#define KEEL_PLUGINS_VULKAN_CHOICE_H
#include "cooperative.h"

namespace vulkan {

// Fills api->devices: the ones in settings().devices, in its order; else all, GPUs first. Returns why
// no device is usable, or "".
std::string ListDevices(Api* api);
void Describe(VkPhysicalDevice device, keel_device_info* out);

// The features of Vulkan 1.0 to 1.3 in one chain, which `all` begins: none, or those of a device.
struct Features {
  VkPhysicalDeviceVulkan13Features v13 =
      Typed<VkPhysicalDeviceVulkan13Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES);
  VkPhysicalDeviceVulkan12Features v12 =
      Typed<VkPhysicalDeviceVulkan12Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  VkPhysicalDeviceVulkan11Features v11 =
      Typed<VkPhysicalDeviceVulkan11Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES);
  VkPhysicalDeviceFeatures2 all =
      Typed<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
  Features() {
    all.pNext = &v11;
    v11.pNext = &v12;
    v12.pNext = &v13;
  }
  Features(const Api& api, VkPhysicalDevice device);
  // The features that shaders with cooperative matrices need, besides that of the extension.
  bool HaveMatrices() const {
    return v12.shaderFloat16 && v11.storageBuffer16BitAccess && v12.vulkanMemoryModel &&
           v12.vulkanMemoryModelDeviceScope && v13.subgroupSizeControl && v13.computeFullSubgroups;
  }
  Features(const Features&) = delete;
};

// Features that only some ops need. subgroups: arithmetic and shuffles of subgroups in compute shaders.
struct Optional {
  bool f64 = false, f16 = false, storage8 = false, storage16 = false, i8 = false, i16 = false,
       subgroups = false;
  Matrices matrices;
};
Optional OptionalFeatures(VkPhysicalDevice device);

// The first of these features that the driver lacks, as a sentence, or NULL.
const char* Lack(const Optional& has, bool f64, bool storage8, bool storage16);

// Queue families for compute and for transfers (a family of its own if there is one). compute is UINT32_MAX
// if no family computes. transfer_index: number of the queue in its family.
struct Families {
  uint32_t compute = UINT32_MAX, transfer = UINT32_MAX, transfer_index = 0;
};
Families ChooseFamilies(const Api& api, VkPhysicalDevice device);

}  // namespace vulkan
#endif
