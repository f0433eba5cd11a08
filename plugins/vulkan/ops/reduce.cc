// reduce.cc: reductions along any axes.
#include <algorithm>

#include "shader_op.h"

namespace vulkan {
namespace {

// The order is that of shaders/reduce.comp.
constexpr std::string_view kReductions[] = {"reduce_sum", "reduce_mean", "reduce_prod", "reduce_max",
                                            "reduce_min"};
constexpr uint32_t kStateBytes = 16;  // at most
// Few results of many elements are reduced in pieces of about this many elements.
constexpr uint32_t kPiece = 4096, kMostPieces = 1024, kFewResults = 64;

struct ReduceNumbers {
  uint64_t identity = 0;
  uint32_t count = 1, reduced = 1, pieces = 1, kept_rank = 0, rank = 0;
  uint32_t kept_sizes[KEEL_MAX_RANK] = {}, kept_strides[KEEL_MAX_RANK] = {};
  uint32_t sizes[KEEL_MAX_RANK] = {}, strides[KEEL_MAX_RANK] = {};

  // Adjacent dims of one sort are one dim.
  void Add(bool is_reduced, bool merges, int64_t size, int64_t stride) {
    uint32_t& r = is_reduced ? rank : kept_rank;
    uint32_t& all = (is_reduced ? sizes : kept_sizes)[merges ? r - 1 : r];
    all = (merges ? all : 1) * static_cast<uint32_t>(size);
    (is_reduced ? strides : kept_strides)[merges ? r - 1 : r] = static_cast<uint32_t>(stride);
    (is_reduced ? reduced : count) *= static_cast<uint32_t>(size);
    r += !merges;
  }
};

uint64_t Zero(const keel_tensor&) { return 0; }
uint64_t One(const keel_tensor& x) { return BitsOf(x, 1); }
constexpr uint64_t (*kIdentities[])(const keel_tensor&) = {Zero, Zero, One, LowestBits,
                                                           HighestBits};  // by reduction

ReduceNumbers Read(Op& op, const keel_tensor& x) {
  const auto axes = op.List("axes");
  int64_t strides[KEEL_MAX_RANK];
  row_major(x, strides);
  ReduceNumbers n;
  bool last = false;
  for (int i = 0; i < x.ndim; i++) {
    const bool is_reduced = std::find(axes.begin(), axes.end(), i) != axes.end();
    n.Add(is_reduced, i > 0 && is_reduced == last, x.shape[i], strides[i]);
    last = is_reduced;
  }
  return n;
}

void Reduce(Op& op) {
  const keel_tensor x = op.In(0);
  ReduceNumbers n = Read(op, x);
  const auto name = std::find(std::begin(kReductions), std::end(kReductions), op.host->node_op(op.node));
  const uint32_t kind = static_cast<uint32_t>(name - std::begin(kReductions));
  n.identity = kIdentities[kind](x);
  const uint32_t most_of_group = 64 * kMostIterations;
  if (n.count <= kFewResults) n.pieces = std::clamp(n.reduced / kPiece, 1u, kMostPieces);
  n.pieces = std::max(n.pieces, n.reduced / most_of_group);
  const uint32_t grouped =
      n.pieces > 1 || (n.reduced >= 64 && (n.count < 4096 || n.reduced > kMostIterations));
  op.work.Set(n);
  op.work.Threads(uint64_t{n.count} * n.pieces, grouped ? 1 : 64);
  const char* shader = *name == "reduce_mean" && !IsFloat(x) ? "reduce_mean" : "reduce";
  op.work.pipeline = op.Numbers(shader, x, {kind, grouped});
  if (n.pieces == 1) return;
  op.work.scratch_bytes = uint64_t{kStateBytes} * n.count * n.pieces;
  op.Then(op.Numbers(shader, x, {kind, 0}), ThreadGroups(n.count), 1);
}

}  // namespace

Impls ReduceImpls() {
  Impls all;
  for (std::string_view op : kReductions) {
    const bool of_any = op == "reduce_max" || op == "reduce_min";
    all.push_back(
        NumbersRow<Reduce>(op.data(), of_any ? kAllTypes : kNumTypes, "reduction by groups or threads"));
  }
  return all;
}

}  // namespace vulkan
