// kernel.h: the interface of this folder: a fused elementwise body becomes one compute shader.
//
// The shader has the entry point `main`, group size (group_size, 1, 1), no descriptors, and traverses the
// iteration space with a grid-stride loop: any number of groups along x computes all elements.
//
// Parameters are 64-bit words, little-endian; rank, n_in and n_out are those of the spec:
//   word 0                  number of elements of the iteration space
//   word 1                  device address of the run's fault bytes (read only if the kernel may fail)
//   word 2                  keel_call.fault | KEEL_RANGE (the same)
//   words 3 ...             device address of the first element of each operand in spec.reads, in that order
//   then                    device address of each result, in the order of body.results
//   strided only: `rank` words: sizes of the dims, the last one varying fastest, then for each operand in
//                           spec.reads `rank` words: its strides in elements, 0 where it is broadcast
// (keel_host.merge_dims gives these.) Results are contiguous and have the shape of the iteration space.
// With spec.in_push the words are the push constants themselves, of ParameterWords() * 8 bytes; otherwise the
// push constants are one word: the device address of the words, 8-byte aligned.
// With spec.indirect each address of an operand or result is instead the address of a word that holds it.
//
// The plain index is u32: the number of elements plus the number of threads, and each operand's offset, must
// be below 2^32; otherwise set wide_index.
#pragma once

#include <string>

#include "module.h"
#include "sdk/plugin/body.h"

namespace keel_spirv {

struct KernelSpec {
  keel::plugin::Body body;      // needed_part() of a body whose results have one shape
  std::vector<uint32_t> reads;  // operands that it reads, from needed_part()
  bool strided = false;         // false: each operand has all elements, or one if its bit in `ones` is set
  uint64_t ones = 0;            // by position in `reads`; contiguous kernels only
  uint32_t rank = 0;            // 1 to 8; strided kernels only
  bool wide_index = false;
  bool in_push = true;
  bool indirect = false;
  uint32_t group_size = 256;
};

struct Kernel {
  Words words;
  std::string error;      // why there is no kernel, if `words` is empty
  bool may_fail = false;  // the launch writes fault bytes
  bool float64 = false, storage8 = false, storage16 = false;  // features needed besides shaderInt64
};

Kernel MakeKernel(const KernelSpec& spec);
uint32_t ParameterWords(const KernelSpec& spec);

// Composite ops that a body may contain, for read_body.
const std::vector<keel::plugin::OwnOp>& OwnOps();

// The spec of the op `random`: no operands but the key (u64). kind: "random.uniform" or "random.normal".
KernelSpec RandomSpec(const char* kind, keel_dt dtype);

}  // namespace keel_spirv
