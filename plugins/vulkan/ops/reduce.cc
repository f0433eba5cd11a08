// reduce.cc: reductions along any axes.
#include <algorithm>
#include <cstring>

#include "ops.h"

namespace vulkan {
namespace {

constexpr const char* kReductions[] = {"reduce_sum", "reduce_mean", "reduce_prod", "reduce_max", "reduce_min"};

struct Numbers {
  uint32_t count = 1, reduced = 1, kept_rank = 0, reduced_rank = 0;
  uint32_t kept_sizes[KEEL_MAX_RANK] = {}, kept_strides[KEEL_MAX_RANK] = {};
  uint32_t sizes[KEEL_MAX_RANK] = {}, strides[KEEL_MAX_RANK] = {};

  void Add(bool is_reduced, int64_t size, int64_t stride) {
    uint32_t& rank = is_reduced ? reduced_rank : kept_rank;
    (is_reduced ? sizes : kept_sizes)[rank] = static_cast<uint32_t>(size);
    (is_reduced ? strides : kept_strides)[rank] = static_cast<uint32_t>(stride);
    (is_reduced ? reduced : count) *= static_cast<uint32_t>(size);
    rank++;
  }
};

Code ShaderOf(const keel_tensor& x) {
  switch (keel_dt_of(&x)) {
    case KEEL_F64: return kReduceF64;
    case KEEL_I32: return kReduceI32;
    case KEEL_I64: return kReduceI64;
  }
  return kReduceF32;
}

keel_rc PrepareReduce(keel_dev d, const keel_host* host, const keel_node* of, keel_launch* launch) {
  Node node(host, of);
  const keel_tensor x = node.In(0);
  const auto axes = node.List("axes");
  if (keel_rc rc = CheckCounts(node)) return rc;
  int64_t strides[KEEL_MAX_RANK];
  RowMajor(x, strides);
  Numbers numbers;
  for (int i = 0; i < x.ndim; i++)
    numbers.Add(std::find(axes.begin(), axes.end(), i) != axes.end(), x.shape[i], strides[i]);
  Work work;
  work.Set(numbers);
  work.Threads(numbers.count, 1);
  const char* name = host->node_op(of);
  const auto op = std::find_if(std::begin(kReductions), std::end(kReductions),
                               [&](const char* each) { return !std::strcmp(each, name); });
  const Constants constants = {static_cast<uint32_t>(op - std::begin(kReductions))};
  if (keel_rc rc = d->Pipeline(ShaderOf(x), constants, &work.pipeline)) return rc;
  return node.Finish(work, launch);
}

int32_t Match(keel_dev d, const keel_host* host, const keel_node* of) {
  Node node(host, of);
  const keel_tensor x = node.In(0);
  const bool integer_mean = keel_dt_of(&x) != KEEL_F32 && keel_dt_of(&x) != KEEL_F64 &&
                            !std::strcmp(host->node_op(of), "reduce_mean");  // would divide by zero
  return !integer_mean && (keel_dt_of(&x) != KEEL_F64 || d->has.f64);
}

}  // namespace

Impls ReduceImpls() {
  Impls all;
  for (const char* op : kReductions) all.push_back(Row(op, "T=f32|f64|i32|i64", PrepareReduce, Match));
  return all;
}

}  // namespace vulkan
