// scatter.cc: scatter_add and scatter_nd, in the order of the rows. An index out of range is stored in the
// fault bytes.
#include <algorithm>

#include "shader_op.h"

namespace vulkan {
namespace {

constexpr std::string_view kModes[] = {"set", "add", "mul", "max", "min"};  // shaders/scatter.comp
constexpr uint32_t kAdd = 1;
// Threads that are enough for a device. Each reads all indices, so more of them are more work.
constexpr uint32_t kThreads = 512;

struct ScatterNumbers {
  uint32_t outer = 1, places = 1, inner = 1, rows = 1, k = 1, share = 1, shares = 1, batch = 1;
  uint32_t bounds[KEEL_MAX_RANK] = {}, strides[KEEL_MAX_RANK] = {};
};

void Finish(Op& op, ScatterNumbers& n, const keel_tensor& index, uint32_t mode, uint32_t from_x) {
  const uint32_t columns = std::max(1u, n.outer * n.inner);
  n.shares = std::clamp(kThreads / columns, 1u, std::max(1u, n.places));
  n.share = CeilDiv(n.places, n.shares);
  n.batch = kMostIterations / (n.k + 2);
  op.work.Set(n);
  op.work.Threads(uint64_t{n.outer} * n.inner * n.shares);
  op.work.scratch_bytes = from_x ? 0 : 4 * uint64_t{Count32(op.Out(0))};  // sums of half floats
  op.work.pipeline = op.Numbers("scatter", op.Out(0), {index.dtype.bits / 8u, mode, from_x});
  for (uint64_t step = 1; step * n.batch < n.rows; step++) op.Then(op.work.pipeline, op.work.groups, step);
}

void ScatterAdd(Op& op) {
  const Lines lines(op.Out(0), op.Int("axis"));
  ScatterNumbers n;
  n.outer = lines.outer, n.places = lines.size, n.inner = lines.inner;
  n.rows = Count32(op.In(0));
  n.bounds[0] = lines.size, n.strides[0] = 1;
  Finish(op, n, op.In(0), kAdd, 0);
}

void ScatterRows(Op& op) {
  const keel_tensor x = op.In(0), index = op.In(1);
  const int64_t k = index.shape[index.ndim - 1];
  ScatterNumbers n;
  n.places = Product32(x.shape, x.shape + k), n.inner = Product32(x.shape + k, x.shape + x.ndim);
  n.rows = Product32(index.shape, index.shape + index.ndim - 1), n.k = static_cast<uint32_t>(k);
  uint32_t step = 1;
  for (int64_t d = k - 1; d >= 0; step *= static_cast<uint32_t>(x.shape[d--])) {
    n.bounds[d] = static_cast<uint32_t>(x.shape[d]);
    n.strides[d] = step;
  }
  const auto mode = std::find(std::begin(kModes), std::end(kModes), op.Text("mode"));
  Finish(op, n, index, static_cast<uint32_t>(mode - std::begin(kModes)), 1);
}

}  // namespace

Impls ScatterImpls() {
  return {NumbersRow<ScatterAdd>("scatter_add", kNumTypes, "scatter by owner"),
          NumbersRow<ScatterRows>("scatter_nd", kAllTypes, "scatter by owner")};
}

}  // namespace vulkan
