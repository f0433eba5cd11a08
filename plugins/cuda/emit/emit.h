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

// A kernel `name` whose operands are `reads`, then the results. Numbers: count, unused, rank; sizes; strides
// of each operand. Results are contiguous.
std::string FusedKernel(const std::string& name, const keel::plugin::Body& body,
                        const std::vector<uint32_t>& reads);

// The ops of kernel elementwise_DTYPE for operands of that dtype: numbers as for a fused kernel with three
// operands, of which the op needs some, but the second is the op's place in this list. Operand 3 is the
// result.
struct SingleOp {
  std::string op;
  bool with_attribute = false;  // gelu with tanh
  uint32_t arity = 1;
  keel_dt result = 0;
};
std::vector<SingleOp> SingleOps(keel_dt dtype);
// The whole file: elementwise_DTYPE, and cast_DTYPE, whose second number is the place of the result's dtype
// in Dtypes().
std::string SinglesFile(keel_dt dtype);
const std::vector<keel_dt>& Dtypes();

}  // namespace keel_cuda
#endif
