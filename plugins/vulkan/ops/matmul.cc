// matmul.cc: products of f32 matrices, with broadcast batches.
#include <algorithm>

#include "ops.h"

namespace vulkan {
namespace {

struct Numbers {
  uint32_t rows, columns, inner, a_row, a_inner, b_inner, b_column, batches, rank;
  uint32_t sizes[KEEL_MAX_RANK], of_a[KEEL_MAX_RANK], of_b[KEEL_MAX_RANK];
};
constexpr uint32_t kTile = 64;  // shaders/matmul.comp

// Strides of a matrix's batch dims, in those of the result.
void BatchStrides(const keel_tensor& t, const keel_tensor& c, uint32_t* out) {
  int64_t step = t.shape[t.ndim - 1] * t.shape[t.ndim - 2];
  for (int d = t.ndim - 3; d >= 0; step *= t.shape[d--])
    out[d + c.ndim - t.ndim] = t.shape[d] == 1 ? 0 : static_cast<uint32_t>(step);
}

uint32_t Tiles(uint32_t n) { return (n + kTile - 1) / kTile; }

keel_rc PrepareMatmul(keel_dev d, const keel_host* host, const keel_node* of, keel_launch* launch) {
  Node node(host, of);
  const keel_tensor a = node.In(0), b = node.In(1), c = node.Out(0);
  const bool ta = node.Int("ta"), tb = node.Int("tb");
  if (keel_rc rc = CheckCounts(node)) return rc;
  auto dim = [](const keel_tensor& t, int from_end) { return static_cast<uint32_t>(t.shape[t.ndim - from_end]); };
  Numbers n{};
  n.rows = dim(c, 2), n.columns = dim(c, 1), n.inner = dim(a, ta ? 2 : 1);
  n.a_row = ta ? 1 : dim(a, 1), n.a_inner = ta ? dim(a, 1) : 1;
  n.b_inner = tb ? 1 : dim(b, 1), n.b_column = tb ? dim(b, 1) : 1;
  n.rank = static_cast<uint32_t>(c.ndim - 2);
  n.batches = static_cast<uint32_t>(Product(c.shape, c.shape + n.rank));
  for (uint32_t i = 0; i < n.rank; i++) n.sizes[i] = static_cast<uint32_t>(c.shape[i]);
  BatchStrides(a, c, n.of_a);
  BatchStrides(b, c, n.of_b);
  Work work;
  work.Set(n);
  if (keel_count(&c))
    work.groups = {Tiles(n.columns), Tiles(n.rows), std::min(n.batches, kMostGroups)};
  else
    work.groups.x = 0;
  if (work.groups.x > kMostGroups || work.groups.y > kMostGroups)
    return host->fail(KEEL_UNIMPLEMENTED, "matmul: more than 4194240 rows or columns");
  if (keel_rc rc = d->Pipeline(kMatmul, {}, &work.pipeline)) return rc;
  return node.Finish(work, launch);
}

}  // namespace

Impls MatmulImpls() { return {Row("matmul", "T=f32", PrepareMatmul)}; }

}  // namespace vulkan
