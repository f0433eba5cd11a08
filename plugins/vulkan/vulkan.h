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
  PFN_vkGetInstanceProcAddr find = nullptr;
  std::vector<VkPhysicalDevice> devices;  // usable ones
  std::string why;                        // set if there are none
#define VULKAN_FUNCTION(name) PFN_vk##name name = nullptr;
#include "functions.inc"
#undef VULKAN_FUNCTION
};

// Loads libvulkan and creates the instance at the first call. Thread-safe.
const Api& vk();

// Switches, from environment variables; read once (README.md).
struct Settings {
  std::string library;  // path of another libvulkan
  std::string devices;  // indices, UUIDs and parts of names of the devices to list; "": all
  std::string cache;    // folder of the pipeline cache; "": none
  std::string plant;    // a fault for tests of the checks: "barrier", "write", "prepare" or "run"
#define VULKAN_SWITCH(name, VARIABLE) bool name = false;
#include "switches.inc"
#undef VULKAN_SWITCH
  bool gpu_assisted = false;  // KEEL_VULKAN_VALIDATE=gpu: the layer checks addresses on the device instead
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
