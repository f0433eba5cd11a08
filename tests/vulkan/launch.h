// launch.h: runs one node as a SPIR-V kernel: read_body, MakeKernel, the parameters, the shader.
#pragma once

#include "bare_values.h"
#include "plugins/vulkan/spirv/kernel.h"

namespace vulkan_test {

// How the kernel finds its elements.
struct Variant {
  bool strided = false, wide_index = false;
  std::string Name() const;
  static Variant Of(uint32_t bits) { return {(bits & 1) != 0, (bits & 2) != 0}; }
};
constexpr uint32_t kVariants = 4;

struct FaultBytes {  // see keel_impl.h
  uint32_t code, bound;
  int64_t index;
};

keel_spirv::KernelSpec SpecOf(const keel_node& node, const Variant& variant);

// The results' bytes; the node's operands broadcast. Failures are those of the test that runs.
std::vector<std::string> RunKernel(const keel_node& node, const Variant& variant,
                                   const std::vector<std::string>& operands, FaultBytes* fault = nullptr);

}  // namespace vulkan_test
