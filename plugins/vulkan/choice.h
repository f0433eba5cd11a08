// choice.h: which devices of the instance are usable, and their description.
#ifndef KEEL_PLUGINS_VULKAN_CHOICE_H
#define KEEL_PLUGINS_VULKAN_CHOICE_H
#include "capabilities.h"
#include "cooperative.h"
#include "float_modes.h"

namespace vulkan {

// Fills api->devices: the ones in settings().devices, in its order; else all, GPUs first. Returns why
// no device is usable, or "".
std::string ListDevices(Api* api);
void Describe(VkPhysicalDevice device, keel_device_info* out);

// Features that only some ops need. subgroups: arithmetic and shuffles of subgroups in compute shaders.
struct Optional {
  bool f64 = false, f16 = false, storage8 = false, storage16 = false, i8 = false, i16 = false,
       subgroups = false;
  Matrices matrices;
  std::vector<keel::spirv::FloatMode> float_modes;
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
