// pool.cc: the maximum, its index, and the mean of windows.
#include "window.h"

namespace vulkan {
namespace {

enum Kind : uint32_t { kMax, kIndex, kMean };  // shaders/pool.comp

void Pool(Op& op, Kind kind, uint32_t option) {
  const keel_tensor x = op.In(0), y = op.Out(0);
  const auto cells = op.List("window");
  Window window(op, x, cells.data(), y);
  const auto hi = op.List("hi");
  for (size_t d = 0; d < hi.size(); d++) window.hi[d] = static_cast<int32_t>(hi[d]);
  const struct {
    uint64_t lowest;
    uint32_t count, pixels, windows, taps;
    Window window;
  } numbers = {LowestBits(x), Count32(y), window.pixels(), window.windows(), window.taps(), window};
  op.work.Set(numbers);
  op.work.Threads(numbers.count);
  op.work.pipeline = op.Numbers("pool", x, {kind, option, window.rank, IsSmall(window)});
}
void MaxPool(Op& op) { Pool(op, kMax, 0); }
void MaxPoolIndex(Op& op) { Pool(op, kIndex, op.Int("column_major") != 0); }
void AvgPool(Op& op) { Pool(op, kMean, op.Int("count_pad") != 0); }

}  // namespace

Impls PoolImpls() {
  constexpr const char* kName = "thread for each window";
  return {NumbersRow<MaxPool>("max_pool", kNumTypes, kName),
          NumbersRow<MaxPoolIndex>("max_pool_index", kNumTypes, kName),
          NumbersRow<AvgPool>("avg_pool", kFloatTypes, kName)};
}

}  // namespace vulkan
