// reduce.cc: reductions along any axes.
#include <algorithm>
#include <optional>
#include <span>

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

using Axes = std::span<const int64_t>;

// Adjacent axes: x[outer, size, inner] along the middle dim. kernels/folds.cu
struct Fold {
  int64_t outer = 1, size = 1, inner = 1;
};
std::optional<Fold> FoldOf(const keel_tensor& x, Axes axes) {
  Fold fold;
  for (int i = 0; i < x.ndim; i++) {
    if (x.shape[i] == 1) continue;
    const bool reduced = std::ranges::find(axes, i) != axes.end();
    if (reduced && fold.inner > 1) return std::nullopt;
    (reduced ? fold.size : fold.size > 1 ? fold.inner : fold.outer) *= x.shape[i];
  }
  constexpr int64_t kShort = 32;  // a thread reads such a row
  const bool has_none = fold.outer * fold.size * fold.inner == 0;
  return has_none || fold.size < (fold.inner == 1 ? kShort : 2) ? std::nullopt : std::optional(fold);
}

// How threads share a fold: see the numbers of kernels/folds.cu.
struct Shares {
  int64_t parts = 1, length = 0, threads = 1, vector = 1, blocks = 0;

  // Cuts lines into up to `most` parts of multiples of `step` elements.
  void Cut(int64_t size, int64_t most, int64_t step) {
    length = CeilDiv(CeilDiv(size, std::max<int64_t>(1, most)), step) * step;
    parts = CeilDiv(size, length);
  }
};
// Blocks for a device of any size; more leave it less idle at the end.
constexpr int64_t kFew = 2048, kMany = 8192;

Shares ShareRows(const Fold& fold, int64_t vector) {
  constexpr int64_t kAhead = 4, kLanes = 8, kLong = 8192, kEnough = 1 << 16;
  Shares s;
  s.vector = fold.size % vector ? 1 : vector;
  const auto covers = [&](int64_t vectors) { return s.threads * s.vector * vectors >= fold.size; };
  while (s.threads < kWarp && !covers(s.threads < kLanes ? 1 : kAhead)) s.threads *= 2;
  if (!covers(kAhead) && (fold.size > kLong || fold.outer * s.threads < kEnough)) s.threads = kThreads;
  const int64_t step = kThreads * s.vector * kAhead,
                most = std::min(kMany / fold.outer, fold.size / (2 * step));
  s.Cut(fold.size, s.threads == kThreads && fold.outer < kFew ? most : 1, step);
  s.blocks = Blocks(fold.outer * s.parts, kThreads / s.threads);
  return s;
}
Shares ShareColumns(const Fold& fold, int64_t vector) {
  constexpr int64_t kAhead = 4;
  Shares s;
  s.vector = fold.inner % vector ? 1 : vector;
  while (s.threads * s.vector < fold.inner && s.threads < kThreads &&
         (s.threads < kWarp || fold.size * s.threads < kThreads * kAhead))
    s.threads *= 2;
  const int64_t below = kThreads / s.threads, tiles = fold.outer * CeilDiv(fold.inner, s.threads * s.vector);
  s.Cut(fold.size, tiles < kFew ? std::min(kMany / 2 / tiles, fold.size / (2 * below * kAhead)) : 1, 1);
  s.blocks = Blocks(tiles * s.parts, 1);
  return s;
}
// Of the states of parts: few columns for a block, so that enough blocks take part.
Shares ShareStates(const Fold& fold) {
  Shares s;
  while (s.threads < kWarp / 4 && s.threads < fold.inner) s.threads *= 2;
  s.length = fold.size;
  s.blocks = Blocks(fold.outer * CeilDiv(fold.inner, s.threads), 1);
  return s;
}

// Of a state in scratch: halves are computed in f32, means of integers exactly.
int64_t StateBytes(const keel_tensor& x, bool is_mean) {
  const int64_t bytes = x.dtype.bits / 8;
  if (IsFloat(x)) return std::max<int64_t>(4, bytes);
  return !is_mean ? bytes : bytes <= 2 ? 8 : 16;
}

void EncodeFold(Op& op, const std::string& kernel, const Fold& fold, const Shares& s,
                std::vector<uint32_t> uses, int64_t whole) {
  op.Add("folds", kernel, static_cast<uint32_t>(s.blocks), std::move(uses),
         {fold.outer, fold.size, fold.inner, 0, s.parts, s.length, s.threads, s.vector > 1, whole});
}
void RunFold(Op& op, const Fold& fold) {
  const keel_tensor x = op.In(0);
  const std::string kind = std::string(op.host->node_op(op.node)).substr(std::string_view("reduce_").size());
  const std::string name = kind + "_" + NameOf(keel::plugin::dtype_of(x));
  const int64_t bytes = x.dtype.bits / 8, vector = bytes == 1 ? 8 : 16 / bytes;
  const Shares s = fold.inner == 1 ? ShareRows(fold, vector) : ShareColumns(fold, vector);
  const uint32_t scratch = op.Result(op.n_out);
  EncodeFold(op, (fold.inner == 1 ? "rows_" : "columns_") + name, fold, s,
             {0, s.parts > 1 ? scratch : op.Result()}, fold.size);
  if (s.parts == 1) return;
  const Fold states = {fold.outer, s.parts, fold.inner};
  op.work.scratch_bytes =
      static_cast<uint64_t>(fold.outer * s.parts * fold.inner * StateBytes(x, kind == "mean"));
  EncodeFold(op, "states_" + name, states, ShareStates(states), {scratch, op.Result()}, fold.size);
}

void Reduce(Op& op) {
  const keel_tensor x = op.In(0);
  const auto axes = op.List("axes");
  if (const std::optional<Fold> fold = FoldOf(x, axes)) return RunFold(op, *fold);
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
