// kernel.h: the interface of this folder: a fused elementwise body becomes one compute shader.
//
// The shader has the entry point `main`, group size (group_size, 1, 1), no descriptors, and traverses the
// iteration space with a grid-stride loop: any number of groups along x computes all elements.
//
// Parameters as for every shader (../launch.h): the addresses of all operands of the body, of its
// results, of scratch and of the fault bytes, the fault code, then these numbers, 64 bits each:
//   number of elements of the iteration space
//   strided only: `rank` sizes of the dims, the last one varying fastest, then for each operand in spec.reads
//   `rank`
//                 strides in elements, 0 where it is broadcast
// (keel_host.merge_dims gives these.) Results are contiguous and have the shape of the iteration space.
//
// The plain index is u32: the number of elements plus the number of threads, and each operand's offset, must
// be below 2^32; otherwise set wide_index.
#pragma once

#include <string>
#include <string_view>

#include "sdk/plugin/body.h"
#include "sdk/plugin/spirv.h"

namespace keel_spirv {

using keel::spirv::Words;

struct KernelSpec {
  keel::plugin::Body body;      // needed_part() of a body whose results have one shape
  std::vector<uint32_t> reads;  // operands that it reads, from needed_part()
  bool strided = false;         // false: each operand has all elements, or one if its bit in `ones` is set
  uint64_t ones = 0;            // by position in `reads`; contiguous kernels only
  uint32_t rank = 0;            // 1 to 8; strided kernels only
  bool wide_index = false;
  uint32_t group_size = 256;
};

struct Kernel {
  Words words;
  std::string error;                                          // why there is no kernel, if `words` is empty
  bool may_fail = false;                                      // the launch writes fault bytes
  bool float64 = false, storage8 = false, storage16 = false;  // features needed besides shaderInt64
};

Kernel MakeKernel(const KernelSpec& spec);

// Composite ops that a body may contain, for read_body.
const std::vector<keel::plugin::OwnOp>& OwnOps();

// The spec of one op with operands of this dtype (select's condition: bool).
KernelSpec OneOpSpec(std::string_view op, keel_dt dtype);

// The spec of the op `random`: no operands but the key (u64). kind: "random.uniform" or "random.normal".
KernelSpec RandomSpec(const char* kind, keel_dt dtype);

}  // namespace keel_spirv
