// vulkan.h: the functions of libvulkan, found by dlopen, and the instance.
#ifndef KEEL_PLUGINS_VULKAN_VULKAN_H
#define KEEL_PLUGINS_VULKAN_VULKAN_H
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <string>
#include <vector>

#include "abi/keel_plugin.h"

namespace vulkan {

struct Api {
  VkInstance instance = nullptr;
  std::vector<VkPhysicalDevice> devices;  // usable ones
  std::string why;                        // set if there are none
#define VULKAN_FUNCTION(name) PFN_vk##name name = nullptr;
#include "functions.inc"
#undef VULKAN_FUNCTION
};

// Loads libvulkan and creates the instance at the first call. Thread-safe.
const Api& vk();

// Switches, from environment variables; read once.
struct Settings {
  std::string library;         // KEEL_VULKAN_LIBRARY: path of another libvulkan
  bool validate = false;       // KEEL_VULKAN_VALIDATE: the validation layer with synchronization validation
  bool fences = false;         // KEEL_VULKAN_FENCES: the host waits for fences, not for timeline semaphores
  bool one_queue = false;      // KEEL_VULKAN_ONE_QUEUE: transfers share the compute queue
  bool barriers = false;       // KEEL_VULKAN_BARRIERS: a barrier before each command
  bool verify = false;         // KEEL_VULKAN_VERIFY: check barriers against operand ranges (verifier.h)
  bool plant_missing = false;  // KEEL_VULKAN_PLANT=barrier: omits barriers between launches, for tests
};
const Settings& settings();

// Prints a finding of the validation layer or the verifier to stderr.
void Complain(const char* source, const char* text);

// A structure of Vulkan, zeroed except for its type.
template <typename T>
T Typed(VkStructureType type) {
  T made{};
  made.sType = type;
  return made;
}

}  // namespace vulkan
#endif
