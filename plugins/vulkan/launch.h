// launch.h: launches. An impl's prepare fills a Work; run is the same function for all impls.
//
// Parameters of every shader, of shaders/ (common.glsl) and generated (spirv/kernel.h), at the address in its
// push constant:
//   u64 addresses of the operands, the results, scratch and the fault bytes; 0: omitted
//   u64 keel_call.fault | KEEL_RANGE, for the fault code
//   numbers of the shader: sizes, strides ...
// A launch of several dispatches has the same parameters for each, and for each a number, its step, and the
// offset of its shader's numbers.
#ifndef KEEL_PLUGINS_VULKAN_LAUNCH_H
#define KEEL_PLUGINS_VULKAN_LAUNCH_H
#include <cstring>
#include <string>
#include <type_traits>

#include "device.h"

namespace vulkan {

inline constexpr uint32_t kMostGroups = 65535;  // in each direction, on every driver

struct Groups {
  uint32_t x = 1, y = 1, z = 1;  // x 0: nothing to do
};

// n / size, rounded up.
template <typename T>
constexpr T CeilDiv(T n, uint32_t size) {
  return (n + size - 1) / size;
}
inline Groups ThreadGroups(uint64_t n, uint32_t group = 64) {
  const uint64_t all = CeilDiv(n, group);
  return {static_cast<uint32_t>(all < kMostGroups ? all : kMostGroups), 1, 1};
}

struct Dispatch {
  VkPipeline pipeline = nullptr;
  Groups groups;
  uint64_t step = 0;
  uint64_t numbers = 0;  // offset of the shader's among all
};

// State of a launch, read-only after prepare.
struct Work : Dispatch {
  std::vector<Dispatch> more;  // dispatches after the first, each after a barrier
  std::vector<unsigned char> all_numbers;
  uint64_t scratch_bytes = 0;
  bool copies = false;  // nothing to do if result 0 shares the memory of operand 0
  const char* op = "";  // set by Finish
  std::string fails;    // "": no; else each run fails with KEEL_RANGE, prepare does not: it may never run

  template <typename T>
  void Set(const T& value) {
    all_numbers.clear();
    Add(value);
  }
  // Numbers of one more shader; returns their offset.
  template <typename T>
  uint64_t Add(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 8);
    const size_t at = (all_numbers.size() + 7) / 8 * 8;
    all_numbers.resize(at + sizeof value);
    std::memcpy(all_numbers.data() + at, &value, sizeof value);
    return at;
  }
  // One thread an element, with a grid stride beyond the largest grid.
  void Threads(uint64_t n, uint32_t group = 64) { groups = ThreadGroups(n, group); }
};

// Passes a Work to Keel as the launch of a node.
keel_rc Finish(const keel_host* host, const keel_node* node, const Work& work, keel_launch* launch);

// Encodes a dispatch whose parameters are at a device address.
void DispatchAt(keel_dev d, VkCommandBuffer commands, const Dispatch& dispatch, uint64_t params);

}  // namespace vulkan
#endif
