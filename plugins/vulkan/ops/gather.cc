// gather.cc: gather, gather_elements, gather_nd. An index out of range is stored in the fault bytes.
#include "shader_op.h"

namespace vulkan {
namespace {

enum Mode : uint32_t { kAxis, kElements, kRows };  // shaders/gather.comp

struct GatherNumbers {
  uint32_t count = 0, rank = 0, k = 0;
  uint32_t sizes[KEEL_MAX_RANK] = {}, bounds[KEEL_MAX_RANK] = {}, strides[KEEL_MAX_RANK] = {};

  // Bounds and strides of x from dim `first` on.
  void Indexed(const keel_tensor& x, int64_t first) {
    int64_t steps[KEEL_MAX_RANK];
    row_major(x, steps);
    for (int64_t d = first; d < x.ndim; d++) {
      bounds[d - first] = static_cast<uint32_t>(x.shape[d]);
      strides[d - first] = static_cast<uint32_t>(steps[d]);
    }
  }
};

void Finish(Op& op, Mode mode, GatherNumbers& n) {
  const keel_tensor y = op.Out(0);
  n.count = Count32(y);
  op.work.Set(n);
  op.work.Threads(n.count);
  op.work.pipeline = op.Movement("gather", y, {op.In(1).dtype.bits / 8u, mode});
}

void Gather(Op& op) {
  const Lines lines(op.In(0), op.Int("axis"));
  GatherNumbers n;
  n.sizes[0] = lines.size, n.sizes[1] = Count32(op.In(1)), n.sizes[2] = lines.inner;
  Finish(op, kAxis, n);
}

void GatherElements(Op& op) {
  const keel_tensor index = op.In(1);
  GatherNumbers n;
  n.Indexed(op.In(0), 0);
  n.rank = static_cast<uint32_t>(index.ndim), n.k = static_cast<uint32_t>(op.Int("axis"));
  for (int d = 0; d < index.ndim; d++) n.sizes[d] = static_cast<uint32_t>(index.shape[d]);
  Finish(op, kElements, n);
}

void GatherRows(Op& op) {
  const keel_tensor x = op.In(0), index = op.In(1);
  const int64_t batch = op.Int("batch"), k = index.shape[index.ndim - 1];
  GatherNumbers n;
  n.Indexed(x, batch);
  n.k = static_cast<uint32_t>(k);
  n.sizes[0] = Product32(index.shape + batch, index.shape + index.ndim - 1);
  n.sizes[1] = Product32(x.shape + batch + k, x.shape + x.ndim);
  n.sizes[2] = Product32(x.shape + batch, x.shape + x.ndim);
  Finish(op, kRows, n);
}

}  // namespace

Impls GatherImpls() {
  return {MovementRow<Gather>("gather", "gather"), MovementRow<GatherElements>("gather_elements", "gather"),
          MovementRow<GatherRows>("gather_nd", "gather")};
}

}  // namespace vulkan
