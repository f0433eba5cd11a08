// elementwise.cc: elementwise ops. Operands are broadcast by strides.
#include <iterator>

#include "ops.h"

namespace vulkan {
namespace {

keel_rc PrepareAdd(keel_dev d, const keel_host* host, const keel_node* of, keel_launch* launch) {
  Node node(host, of);
  const keel_tensor a = node.In(0), b = node.In(1), c = node.Out(0);
  if (keel_rc rc = CheckCounts(node)) return rc;
  const keel_tensor* tensors[] = {&a, &b, &c};
  int64_t sizes[KEEL_MAX_RANK], strides[3 * KEEL_MAX_RANK];
  int32_t rank;
  if (keel_rc rc = host->merge_dims(tensors, 3, sizes, strides, &rank)) return rc;
  struct {
    uint32_t count, rank, sizes[KEEL_MAX_RANK], of_a[KEEL_MAX_RANK], of_b[KEEL_MAX_RANK];
  } numbers{};
  numbers.count = static_cast<uint32_t>(keel_count(&c));
  numbers.rank = static_cast<uint32_t>(rank);
  for (int i = 0; i < rank; i++) {
    numbers.sizes[i] = static_cast<uint32_t>(sizes[i]);
    numbers.of_a[i] = static_cast<uint32_t>(strides[i]);
    numbers.of_b[i] = static_cast<uint32_t>(strides[KEEL_MAX_RANK + i]);
  }
  Work work;
  work.Set(numbers);
  work.Threads(numbers.count);
  if (keel_rc rc = d->Pipeline(Shader("add"), {}, &work.pipeline)) return rc;
  return node.Finish(work, launch);
}

}  // namespace

Impls ElementwiseImpls() { return {Row("add", "T=f32", PrepareAdd)}; }

}  // namespace vulkan
