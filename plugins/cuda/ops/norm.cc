// norm.cc: composites that read a row several times, in one launch: softmax, log_softmax, log_sum_exp,
// layer_norm, rms_norm; batch_norm (kernels/rows.cu).
#include <algorithm>
#include <bit>

#include "emit/emit.h"
#include "op.h"

namespace keel_cuda {
namespace {

enum Softmaxes : int64_t { kSoftmax, kLogSoftmax, kLogSumExp };  // kernels/rows.cu
enum Norms : int64_t { kLayer, kRms };                           // kernels/rows.cu

struct Rows {
  int64_t count, size, inner;
};

// Threads of a row: few for short ones, so that a block takes several; one where adjacent lines are adjacent
// in memory and enough of them fill the device.
int64_t GroupFor(const Rows& rows) {
  constexpr int64_t kShort = 16, kMedium = 1024, kEnough = 16384;
  if (rows.size < kShort || (rows.inner > 1 && rows.count >= kEnough)) return 1;
  return rows.size <= kMedium ? kWarp : kThreads;
}
// Threads that keep a row in registers, or what they can; more where there are few rows. kernels/groups.cuh
int64_t KeepingGroup(const Rows& rows, int64_t vector) {
  const int64_t kept = vector == 1 ? 12 : 8, least = vector == 1 ? kWarp : kWarp / 4;
  constexpr int64_t kEnough = 1 << 18;
  int64_t group = 1;
  while (group < kMostThreads && group * vector < rows.size &&
         (group < least || group * vector * kept < rows.size || rows.count * group < kEnough))
    group *= 2;
  return group;
}
// f64, and lines that are not rows, are read several times.
bool AreKept(const Rows& rows, const keel_tensor& x) {
  return rows.inner == 1 && x.dtype.bits < 64 && std::max(rows.count, rows.size) <= INT32_MAX;
}

void Encode(Op& op, const std::string& kernel, int64_t kind, const Rows& rows, int64_t last,
            const std::vector<uint32_t>& uses) {
  const keel_tensor x = op.In(0);
  const std::string name = kernel + NameOf(keel::plugin::dtype_of(x));
  if (!AreKept(rows, x)) {
    const int64_t group = GroupFor(rows);
    return op.Add("rows", name, Blocks(rows.count, kThreads / group), uses,
                  {rows.count, group, kind, rows.size, last});
  }
  const int64_t bytes = x.dtype.bits / 8, vector = rows.size * bytes % 16 == 0 ? 16 / bytes : 1;
  const int64_t group = KeepingGroup(rows, vector), threads = group > kWarp ? group : kThreads;
  op.Add("rows", (vector == 1 ? "keep_any_" : "keep_") + name,
         static_cast<uint32_t>(CeilDiv(rows.count, threads / group)), uses,
         {rows.count, group, kind, rows.size, last}, static_cast<uint32_t>(threads));
}

void RunSoftmax(Op& op, Softmaxes kind) {
  const Lines lines(op.In(0), op.Int("axis"));
  Encode(op, "softmax_", kind, {lines.outer * lines.inner, lines.size, lines.inner}, lines.inner,
         {0, op.Result()});
}
void Softmax(Op& op) { RunSoftmax(op, kSoftmax); }
void LogSoftmax(Op& op) { RunSoftmax(op, kLogSoftmax); }
void LogSumExp(Op& op) { RunSoftmax(op, kLogSumExp); }

int64_t Epsilon(Op& op) { return std::bit_cast<int64_t>(op.Float("eps")); }
void RunNorm(Op& op, Norms kind, uint32_t b) {
  const keel_tensor x = op.In(0);
  Encode(op, "norm_", kind, {product(x.shape, x.shape + x.ndim - 1), dim_from_end(x, 1), 1}, Epsilon(op),
         {0, 1, b, op.Result()});
}
void LayerNorm(Op& op) { RunNorm(op, kLayer, 2); }
void RmsNorm(Op& op) { RunNorm(op, kRms, 1); }

void BatchNorm(Op& op) {
  const keel_tensor x = op.In(0);
  const int64_t count = keel_count(&x);
  op.Add("rows", "batch_norm_" + NameOf(keel::plugin::dtype_of(x)), Blocks(count),
         {0, 1, 2, 3, 4, op.Result()},
         {count, x.shape[1], product(x.shape + 2, x.shape + x.ndim), Epsilon(op)});
}

}  // namespace

Impls NormImpls() {
  constexpr const char* kRows = "rows in registers, or by threads, parts of blocks or blocks";
  return {Row<Softmax>("softmax", kFloatTypes, kRows),
          Row<LogSoftmax>("log_softmax", kFloatTypes, kRows),
          Row<LogSumExp>("log_sum_exp", kFloatTypes, kRows),
          Row<LayerNorm>("layer_norm", kFloatTypes, kRows),
          Row<RmsNorm>("rms_norm", kFloatTypes, kRows),
          Row<BatchNorm>("batch_norm", kFloatTypes, "a thread for each element")};
}

}  // namespace keel_cuda
