// gather.cc: gather, with indices out of range stored in the fault bytes.
#include "ops.h"

namespace vulkan {
namespace {

keel_rc PrepareGather(keel_dev d, const keel_host* host, const keel_node* of, keel_launch* launch) {
  Node node(host, of);
  const keel_tensor x = node.In(0), index = node.In(1);
  const int64_t axis = node.Int("axis");
  if (keel_rc rc = CheckCounts(node)) return rc;
  const int64_t* at = x.shape + axis;
  const struct {
    uint32_t outer, axis, count, inner;
  } numbers = {static_cast<uint32_t>(Product(x.shape, at)), static_cast<uint32_t>(*at),
               static_cast<uint32_t>(keel_count(&index)), static_cast<uint32_t>(Product(at + 1, x.shape + x.ndim))};
  Work work;
  work.Set(numbers);
  work.Threads(uint64_t{numbers.outer} * numbers.count * numbers.inner);
  if (keel_rc rc = d->Pipeline(kGather[WidthIndex(d, x)], {index.dtype.bits / 8u}, &work.pipeline)) return rc;
  return node.Finish(work, launch);
}

int32_t Match(keel_dev d, const keel_host* host, const keel_node* of) {
  Node node(host, of);
  return WidthIndex(d, node.In(0)) >= 0;
}

}  // namespace

Impls GatherImpls() { return {Row("gather", nullptr, PrepareGather, Match)}; }

}  // namespace vulkan
