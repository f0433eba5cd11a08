// capabilities.h: a device's features and properties, from the driver. (features.h would hide glibc's.)
#ifndef KEEL_PLUGINS_VULKAN_CAPABILITIES_H
#define KEEL_PLUGINS_VULKAN_CAPABILITIES_H
#include "vulkan.h"

namespace vulkan {

// The features of Vulkan 1.0 to 1.3 in one chain that begins with `all`: none, or the features of a device.
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
  Features(const Api& api, VkPhysicalDevice device) : Features() {
    api.GetPhysicalDeviceFeatures2(device, &all);
  }
  // The features that shaders with cooperative matrices need, besides that of the extension.
  bool HaveMatrices() const {
    return v12.shaderFloat16 && v11.storageBuffer16BitAccess && v12.vulkanMemoryModel &&
           v12.vulkanMemoryModelDeviceScope && v13.subgroupSizeControl && v13.computeFullSubgroups;
  }
  Features(const Features&) = delete;
};

// The properties of a device of Vulkan 1.3, in one chain.
struct Properties {
  VkPhysicalDeviceVulkan13Properties v13 =
      Typed<VkPhysicalDeviceVulkan13Properties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES);
  VkPhysicalDeviceVulkan12Properties v12 =
      Typed<VkPhysicalDeviceVulkan12Properties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES);
  VkPhysicalDeviceVulkan11Properties v11 =
      Typed<VkPhysicalDeviceVulkan11Properties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES);
  VkPhysicalDeviceProperties2 all =
      Typed<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
  Properties(const Api& api, VkPhysicalDevice device) {
    all.pNext = &v11;
    v11.pNext = &v12;
    v12.pNext = &v13;
    api.GetPhysicalDeviceProperties2(device, &all);
  }
  Properties(const Properties&) = delete;
};

}  // namespace vulkan
#endif
