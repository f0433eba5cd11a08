// space.h: the iteration space of a generated elementwise kernel (emit.h).
#ifndef KEEL_PLUGINS_CUDA_SPACE_H
#define KEEL_PLUGINS_CUDA_SPACE_H
#include "op.h"

namespace keel_cuda {

// Numbers of a kernel whose operands, and a result, are these tensors: `slots` operands get strides. The
// second number is `place`. Sets op.rc.
std::vector<int64_t> SpaceNumbers(Op& op, const std::vector<keel_tensor>& tensors, int64_t place,
                                  size_t slots);

}  // namespace keel_cuda
#endif
