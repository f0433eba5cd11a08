// vulkan.h: the functions of libvulkan that the sketch uses, found by dlopen, and the devices that can run
// it.
#ifndef KEEL_TESTS_DEVICES_VULKAN_H
#define KEEL_TESTS_DEVICES_VULKAN_H
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <string>
#include <vector>

#include "abi/keel_plugin.h"

namespace sketch {

struct Vulkan {
  VkInstance instance = nullptr;
  std::vector<VkPhysicalDevice> devices;
  std::string why;  // there are no devices
#define SKETCH_FUNCTION(name) PFN_vk##name name = nullptr;
#include "functions.inc"
#undef SKETCH_FUNCTION
};

// Loaded once. VULKAN_SKETCH_LIBRARY names another libvulkan; with VULKAN_SKETCH_VALIDATE messages of the
// validation layer are counted (COUNT_VALIDATION).
const Vulkan& vulkan();

// A structure of Vulkan, zeroed but for its type.
template <typename T>
T Typed(VkStructureType type) {
  T made{};
  made.sType = type;
  return made;
}

// KEEL_OK, or a failure that names the call.
keel_rc Check(const keel_host* host, VkResult result, const char* call);
#define SKETCH_TRY(host, call)                                        \
  do {                                                                \
    if (keel_rc rc_ = sketch::Check(host, (call), #call)) return rc_; \
  } while (0)

}  // namespace sketch
#endif
