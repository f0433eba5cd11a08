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

// Switches, from environment variables; read once (README.md).
struct Settings {
  std::string library;         // path of another libvulkan
  std::string devices;         // indices, UUIDs and parts of names of the devices to list; "": all
  std::string cache;           // folder of the pipeline cache; "": none
  std::string plant;           // a fault for tests of the checks: "barrier", "write", "prepare" or "run"
  bool validate = false;       // the validation layer with synchronization validation
  bool gpu_assisted = false;   // the layer checks addresses on the device instead
  bool fences = false;         // the host waits for fences, not for timeline semaphores
  bool one_queue = false;      // transfers share the compute queue
  bool barriers = false;       // a barrier before each command
  bool staging = false;        // no memory is used that both device and host reach fast
  bool no_recordings = false;  // each run encodes its launches
  bool no_subgroups = false;   // shaders use no subgroup operations
  bool tiles = false;          // a device that is a processor gets the shaders of GPUs
  bool verify = false;         // check barriers against operand ranges (verifier.h)
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
