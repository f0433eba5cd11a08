// product.cc: see product.h.
#include "product.h"

#include <algorithm>

#include "tiles.h"

namespace vulkan {
namespace {

constexpr uint32_t kThreads = 8, kColumns = 8;  // of a group; results of a thread in a row

// A pair is aligned if it begins at an even element.
bool AreEven(uint32_t stride, const uint32_t* batches, uint32_t rank) {
  return stride % 2 == 0 && std::all_of(batches, batches + rank, [](uint32_t each) { return each % 2 == 0; });
}

// Threads side by side such that the fewest are idle.
uint32_t Across(const ProductNumbers& n, uint32_t rows) {
  uint32_t best = 4;
  auto groups = [&](uint32_t across) {
    return uint64_t{CeilDiv(n.columns, kColumns * across)} * CeilDiv(n.rows, rows * (kThreads / across));
  };
  for (uint32_t each : {2u, 8u, 1u})
    if (groups(each) < groups(best)) best = each;
  return best;
}

}  // namespace

void RegisterProduct::FindPairs(const keel_tensor& t) {
  if (t.dtype.bits != 32) return;
  pairs_a = n.a_inner == 1 && AreEven(n.a_row, n.of_a, n.rank);
  pairs_b = n.b_column == 1 && n.columns % 2 == 0 && AreEven(n.b_inner, n.of_b, n.rank);
}

bool MultiplyInRegisters(Op& op, const RegisterProduct& product) {
  const keel_tensor c = op.Out(0);
  const ProductNumbers& n = product.n;
  // The layer that checks addresses multiplies the code of each load.
  const uint32_t most = settings().gpu_assisted ? 4 : 16;
  const uint32_t rows = std::min(n.rows > 8 ? 16u : n.rows > 4 ? 8u : n.rows > 1 ? 4u : 1u, most);
  const uint32_t across = Across(n, rows);
  const struct {
    ProductNumbers n;
    ImageNumbers image;
  } numbers = {n, product.image};
  const Groups groups = {CeilDiv(n.columns, kColumns * across), CeilDiv(n.rows, rows * (kThreads / across)),
                         std::min(n.batches, kMostGroups)};
  if (groups.x > kMostGroups || groups.y > kMostGroups) return false;
  const uint32_t steps = n.inner > n.depth,
                 pairs = c.dtype.bits == 32 && !steps && !product.from_image && n.columns % 2 == 0;
  const VkPipeline pipeline = op.Numbers("product", c,
                                         {rows, kColumns, across, product.pairs_a, product.pairs_b, pairs,
                                          product.with_bias, product.from_image, product.left, steps});
  Steps(op, pipeline, groups, n.inner, n.depth, op.work.Add(numbers));
  return true;
}

}  // namespace vulkan
