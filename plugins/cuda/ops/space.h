// space.h: the iteration space of a generated elementwise kernel (emit.h).
#ifndef KEEL_PLUGINS_CUDA_SPACE_H
#define KEEL_PLUGINS_CUDA_SPACE_H
#include "emit/emit.h"
#include "op.h"

namespace keel_cuda {

struct Space {
  std::vector<int64_t> numbers;
  uint32_t blocks = 0;
};
// Of a kernel whose operands are the tensors but the last one, which is a result. Sets op.rc.
Space SpaceOf(Op& op, const std::vector<keel_tensor>& tensors, Vectors vectors);

}  // namespace keel_cuda
#endif
