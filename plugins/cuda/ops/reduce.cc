// reduce.cc: reductions along any axes.
#include <algorithm>

#include "emit/emit.h"
#include "op.h"

namespace keel_cuda {
namespace {

// The order is that of kernels/reduce.cu.
constexpr std::string_view kReductions[] = {"reduce_sum", "reduce_prod", "reduce_max", "reduce_min",
                                            "reduce_mean"};
constexpr int64_t kFewElements = 64;  // of a result: a thread reduces them

struct Dims {
  std::vector<int64_t> sizes, strides;
  int64_t count = 1;

  void Add(int64_t size, int64_t stride) {
    count *= size;
    if (!sizes.empty() && strides.back() == stride * size) {
      sizes.back() *= size, strides.back() = stride;
    } else {
      sizes.push_back(size), strides.push_back(stride);
    }
  }
  void AppendTo(std::vector<int64_t>* numbers) const {
    numbers->insert(numbers->end(), sizes.begin(), sizes.end());
    numbers->insert(numbers->end(), strides.begin(), strides.end());
  }
};

void Reduce(Op& op) {
  const keel_tensor x = op.In(0);
  const auto axes = op.List("axes");
  int64_t strides[KEEL_MAX_RANK];
  row_major(x, strides);
  Dims kept, reduced;
  for (int i = 0; i < x.ndim; i++)
    (std::ranges::find(axes, i) != axes.end() ? reduced : kept).Add(x.shape[i], strides[i]);
  const auto name = std::ranges::find(kReductions, std::string_view(op.host->node_op(op.node)));
  const int64_t group = reduced.count <= kFewElements ? 1 : kThreads;
  std::vector<int64_t> numbers = {kept.count,
                                  reduced.count,
                                  name - std::begin(kReductions),
                                  group,
                                  static_cast<int64_t>(kept.sizes.size()),
                                  static_cast<int64_t>(reduced.sizes.size())};
  kept.AppendTo(&numbers);
  reduced.AppendTo(&numbers);
  const bool whole = *name == "reduce_mean" && !IsFloat(x);
  op.Add("reduce", (whole ? "mean_" : "reduce_") + NameOf(keel::plugin::dtype_of(x)),
         Blocks(kept.count, group == 1 ? kThreads : 1), {0, op.Result()}, numbers);
}

}  // namespace

Impls ReduceImpls() {
  Impls all;
  for (std::string_view op : kReductions)
    all.push_back(Row<Reduce>(op.data(), op == "reduce_max" || op == "reduce_min" ? kAllTypes : kNumTypes,
                              "reduction by blocks or threads"));
  return all;
}

}  // namespace keel_cuda
