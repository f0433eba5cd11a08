// copy.cc: ops that only move elements: the result's dims are read from the operand by strides.
#include "ops.h"

namespace vulkan {
namespace {

struct View {  // of the operand, in the dims of the result
  int64_t start = 0;
  int64_t strides[KEEL_MAX_RANK] = {};
};

keel_rc FinishCopy(keel_dev d, Node& node, const View& view, keel_launch* launch) {
  const keel_tensor y = node.Out(0);
  if (keel_rc rc = CheckCounts(node)) return rc;
  struct {
    uint32_t count, rank;
    int32_t start;
    uint32_t sizes[KEEL_MAX_RANK];
    int32_t strides[KEEL_MAX_RANK];
  } numbers{};
  numbers.count = static_cast<uint32_t>(keel_count(&y));
  numbers.rank = static_cast<uint32_t>(y.ndim);
  numbers.start = static_cast<int32_t>(view.start);
  for (int i = 0; i < y.ndim; i++) {
    numbers.sizes[i] = static_cast<uint32_t>(y.shape[i]);
    numbers.strides[i] = static_cast<int32_t>(view.strides[i]);
  }
  Work work;
  work.Set(numbers);
  work.Threads(numbers.count);
  if (keel_rc rc = d->Pipeline(kCopy[WidthIndex(d, y)], {}, &work.pipeline)) return rc;
  return node.Finish(work, launch);
}

int32_t Match(keel_dev d, const keel_host* host, const keel_node* of) {
  Node node(host, of);
  return WidthIndex(d, node.In(0)) >= 0;
}

keel_rc PrepareTranspose(keel_dev d, const keel_host* host, const keel_node* of, keel_launch* launch) {
  Node node(host, of);
  const auto perm = node.List("perm");
  int64_t strides[KEEL_MAX_RANK];
  RowMajor(node.In(0), strides);
  View view;
  for (size_t i = 0; i < perm.size(); i++) view.strides[i] = strides[perm[i]];
  return FinishCopy(d, node, view, launch);
}

keel_rc PrepareBroadcast(keel_dev d, const keel_host* host, const keel_node* of, keel_launch* launch) {
  Node node(host, of);
  const keel_tensor x = node.In(0), y = node.Out(0);
  int64_t strides[KEEL_MAX_RANK];
  RowMajor(x, strides);
  View view;
  for (int i = 0; i < x.ndim; i++)
    if (x.shape[i] != 1) view.strides[y.ndim - x.ndim + i] = strides[i];
  return FinishCopy(d, node, view, launch);
}

keel_rc PrepareSlice(keel_dev d, const keel_host* host, const keel_node* of, keel_launch* launch) {
  Node node(host, of);
  const auto start = node.List("start"), step = node.List("step");
  int64_t strides[KEEL_MAX_RANK];
  RowMajor(node.In(0), strides);
  View view;
  for (size_t i = 0; i < start.size() && !node.rc; i++) {
    view.start += start[i] * strides[i];
    view.strides[i] = step[i] * strides[i];
  }
  return FinishCopy(d, node, view, launch);
}

keel_rc PrepareReverse(keel_dev d, const keel_host* host, const keel_node* of, keel_launch* launch) {
  Node node(host, of);
  const keel_tensor x = node.In(0);
  View view;
  RowMajor(x, view.strides);
  for (int64_t axis : node.List("axes")) {
    view.start += (x.shape[axis] - 1) * view.strides[axis];
    view.strides[axis] = -view.strides[axis];
  }
  return FinishCopy(d, node, view, launch);
}

}  // namespace

Impls CopyImpls() {
  return {Row("transpose", nullptr, PrepareTranspose, Match), Row("broadcast_to", nullptr, PrepareBroadcast, Match),
          Row("slice", nullptr, PrepareSlice, Match), Row("reverse", nullptr, PrepareReverse, Match)};
}

}  // namespace vulkan
