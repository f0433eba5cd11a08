// emit.h: CUDA C++ text for elementwise bodies (sdk/plugin/body.h): of one kernel for a fused body, compiled
// at run time, and of the kernels of kernels/elementwise_DTYPE.cu, which the build compiles.
#ifndef KEEL_PLUGINS_CUDA_EMIT_H
#define KEEL_PLUGINS_CUDA_EMIT_H
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/plugin/body.h"

namespace keel_cuda {

// "f32"; "": no dtype of Keel.
std::string NameOf(keel_dt dtype);

// Composite ops that a body may contain, for read_body.
const std::vector<keel::plugin::OwnOp>& OwnOps();

// How a kernel takes elements where operands allow it: vectors of so many, so many vectors for a thread.
struct Vectors {
  size_t elements = 1, of_thread = 1;
};
Vectors VectorsOf(const keel::plugin::Body& body, const std::vector<uint32_t>& reads);

// A kernel `name` whose operands are `reads`, then the results. Numbers (ops/space.h): count; vectors, the
// others are single elements; rank; bits of the operands that have one element for a vector; 1 if 32 bits are
// enough for offsets; sizes; strides of each operand. Results are contiguous.
std::string FusedKernel(const std::string& name, const keel::plugin::Body& body,
                        const std::vector<uint32_t>& reads);

// An op with a kernel of its own in elementwise_DTYPE, for operands of that dtype.
struct SingleOp {
  std::string op;
  bool with_attribute = false;  // gelu with tanh
  uint32_t arity = 1;
  keel_dt result = 0;
};
// All but cast, which has a kernel for each of Dtypes().
std::vector<SingleOp> SingleOps(keel_dt dtype);
Vectors VectorsOf(const SingleOp& op, keel_dt dtype);
std::string KernelOf(const SingleOp& op, keel_dt dtype);
// The whole file.
std::string SinglesFile(keel_dt dtype);
const std::vector<keel_dt>& Dtypes();

}  // namespace keel_cuda
#endif
