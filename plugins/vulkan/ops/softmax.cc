// softmax.cc: softmax and log_softmax along an axis.
#include <cstring>

#include "ops.h"

namespace vulkan {
namespace {

keel_rc PrepareSoftmax(keel_dev d, const keel_host* host, const keel_node* of, keel_launch* launch) {
  Node node(host, of);
  const keel_tensor x = node.In(0);
  const int64_t axis = node.Int("axis");
  if (keel_rc rc = CheckCounts(node)) return rc;
  const int64_t* at = x.shape + axis;
  const struct {
    uint32_t outer, axis, inner;
  } numbers = {static_cast<uint32_t>(Product(x.shape, at)), static_cast<uint32_t>(*at),
               static_cast<uint32_t>(Product(at + 1, x.shape + x.ndim))};
  Work work;
  work.Set(numbers);
  work.Threads(uint64_t{numbers.outer} * numbers.inner, 1);
  const uint32_t log = !std::strcmp(host->node_op(of), "log_softmax");
  if (keel_rc rc = d->Pipeline(kSoftmax, {log}, &work.pipeline)) return rc;
  return node.Finish(work, launch);
}

}  // namespace

Impls SoftmaxImpls() {
  return {Row("softmax", "T=f32", PrepareSoftmax), Row("log_softmax", "T=f32", PrepareSoftmax)};
}

}  // namespace vulkan
