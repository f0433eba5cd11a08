// verifier.h: checks barriers independently of keel_call.depends, from the address ranges of operands. For
// tests (KEEL_VULKAN_VERIFY).
#ifndef KEEL_PLUGINS_VULKAN_VERIFIER_H
#define KEEL_PLUGINS_VULKAN_VERIFIER_H
#include "sdk/plugin/hazards.h"

namespace vulkan {

using keel::plugin::Range;
using keel::plugin::Ranges;

}  // namespace vulkan
#endif
