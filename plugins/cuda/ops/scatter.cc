// scatter.cc: scatter_add and scatter_nd, in the order of the rows. An index out of range is stored in the
// fault bytes.
#include <algorithm>

#include "emit/emit.h"
#include "op.h"

namespace keel_cuda {
namespace {

constexpr std::string_view kModes[] = {"set", "add", "mul", "max", "min"};  // kernels/scatter.cu
// Threads that are enough for a device. Each reads all indices, so more of them are more work.
constexpr int64_t kEnough = 16384;

struct Scatter {
  int64_t outer = 1, places = 1, inner = 1, rows = 1, mode = 1;
  std::vector<int64_t> bounds, strides;
};

void Encode(Op& op, const Scatter& s, const keel_tensor& index, bool from_x) {
  const keel_tensor y = op.Out(0);
  const int64_t columns = s.outer * s.inner;
  const int64_t shares =
      std::clamp<int64_t>(kEnough / std::max<int64_t>(1, columns), 1, std::max<int64_t>(1, s.places));
  std::vector<int64_t> numbers = {s.outer,
                                  s.places,
                                  s.inner,
                                  s.rows,
                                  static_cast<int64_t>(s.bounds.size()),
                                  CeilDiv(s.places, shares),
                                  shares,
                                  index.dtype.bits / 8,
                                  s.mode,
                                  from_x};
  numbers.insert(numbers.end(), s.bounds.begin(), s.bounds.end());
  numbers.insert(numbers.end(), s.strides.begin(), s.strides.end());
  if (!from_x) op.work.scratch_bytes = static_cast<uint64_t>(keel_count(&y)) * std::max(4, y.dtype.bits / 8);
  const uint32_t i = from_x;
  op.Add("scatter", "scatter_" + NameOf(keel::plugin::dtype_of(y)), Blocks(columns * shares),
         {0, i, i + 1, op.Result(), op.Result() + op.n_out}, numbers);
}

void ScatterAdd(Op& op) {
  const keel_tensor index = op.In(0);
  const Lines lines(op.Out(0), op.Int("axis"));
  Encode(op, {lines.outer, lines.size, lines.inner, keel_count(&index), 1, {lines.size}, {1}}, index, false);
}

void ScatterRows(Op& op) {
  const keel_tensor x = op.In(0), index = op.In(1);
  const int64_t k = index.shape[index.ndim - 1];
  Scatter s;
  s.places = product(x.shape, x.shape + k), s.inner = product(x.shape + k, x.shape + x.ndim);
  s.rows = product(index.shape, index.shape + index.ndim - 1);
  s.bounds.assign(x.shape, x.shape + k);
  for (int64_t d = 0; d < k; d++) s.strides.push_back(product(x.shape + d + 1, x.shape + k));
  s.mode = std::ranges::find(kModes, op.Text("mode")) - std::begin(kModes);
  Encode(op, s, index, true);
}

}  // namespace

Impls ScatterImpls() {
  return {Row<ScatterAdd>("scatter_add", kNumTypes, "scatter by owner"),
          Row<ScatterRows>("scatter_nd", kAllTypes, "scatter by owner")};
}

}  // namespace keel_cuda
