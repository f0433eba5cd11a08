// driver.h: a Vulkan loader for tests (KEEL_VULKAN_LIBRARY): between plugins/vulkan and libvulkan.so.1.
// driver.cc counts and fails calls; disguise.cc hides features and memory types.
#ifndef KEEL_TESTS_VULKAN_DRIVER_H
#define KEEL_TESTS_VULKAN_DRIVER_H
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

namespace driver {

// The functions of libvulkan that the plugin calls.
struct Functions {
#define VULKAN_FUNCTION(name) PFN_vk##name name = nullptr;
#include "functions.inc"
  VULKAN_FUNCTION(CreateInstance)
  VULKAN_FUNCTION(DeviceWaitIdle)
#undef VULKAN_FUNCTION
};
extern Functions below;

// A replacement of a function, or NULL.
PFN_vkVoidFunction Disguise(const char* name);
void WaitForQueues(VkDevice device);

}  // namespace driver
#endif
