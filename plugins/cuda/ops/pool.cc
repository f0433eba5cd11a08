// pool.cc: the maximum, its index, and the mean of windows.
#include <bit>

#include "emit/emit.h"
#include "op.h"
#include "sdk/plugin/window.h"

namespace keel_cuda {
namespace {

using Window = keel::plugin::Window<int64_t, int64_t>;
enum Kind : int64_t { kMax, kIndex, kMean };  // kernels/pool.cu

// A window over images of two dims or more: dims of one cell come first.
Window AtLeastTwoDims(const Window& w) {
  if (w.rank >= 2) return w;
  Window wide;
  wide.rank = 2;
  for (int64_t d = 0; d < 2; d++) {
    const int64_t from = d - (2 - w.rank);
    const bool is_new = from < 0;
    wide.image[d] = is_new ? 1 : w.image[from], wide.window[d] = is_new ? 1 : w.window[from];
    wide.places[d] = is_new ? 1 : w.places[from], wide.stride[d] = is_new ? 1 : w.stride[from];
    wide.dil[d] = is_new ? 1 : w.dil[from], wide.lo[d] = is_new ? 0 : w.lo[from];
    wide.hi[d] = is_new ? 0 : w.hi[from];
  }
  return wide;
}

void Pool(Op& op, Kind kind, int64_t option) {
  const keel_tensor x = op.In(0), y = op.Out(0);
  const auto cells = op.List("window"), hi = op.List("hi");
  Window window(op, x, cells.data(), y);
  std::copy(hi.begin(), hi.end(), window.hi);
  window = AtLeastTwoDims(window);
  std::vector<int64_t> numbers = {keel_count(&y),   kind,
                                  option,           window.pixels(),
                                  window.windows(), Window::Product(window.window, window.rank - 2)};
  const auto of = std::bit_cast<std::array<int64_t, sizeof(Window) / sizeof(int64_t)>>(window);
  numbers.insert(numbers.end(), of.begin(), of.end());
  op.Add("pool", (kind == kMean ? "mean_pool_" : "pool_") + NameOf(keel::plugin::dtype_of(x)),
         Blocks(numbers[0]), {0, op.Result()}, numbers);
}
void MaxPool(Op& op) { Pool(op, kMax, 0); }
void MaxPoolIndex(Op& op) { Pool(op, kIndex, op.Int("column_major") != 0); }
void AvgPool(Op& op) { Pool(op, kMean, op.Int("count_pad") != 0); }

}  // namespace

Impls PoolImpls() {
  constexpr const char* kName = "a thread for each window";
  return {Row<MaxPool>("max_pool", kNumTypes, kName), Row<MaxPoolIndex>("max_pool_index", kNumTypes, kName),
          Row<AvgPool>("avg_pool", kFloatTypes, kName)};
}

}  // namespace keel_cuda
