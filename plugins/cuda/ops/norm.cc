// norm.cc: composites that read a row several times, in one launch: softmax, log_softmax, log_sum_exp,
// layer_norm, rms_norm; batch_norm (kernels/rows.cu).
#include <bit>

#include "emit/emit.h"
#include "op.h"

namespace keel_cuda {
namespace {

enum Softmaxes : int64_t { kSoftmax, kLogSoftmax, kLogSumExp };  // kernels/rows.cu
enum Norms : int64_t { kLayer, kRms };                           // kernels/rows.cu

// Threads of a row: few for short ones, so that a block takes several; one where adjacent lines are adjacent
// in memory and enough of them fill the device.
int64_t GroupFor(int64_t rows, int64_t size, int64_t inner) {
  constexpr int64_t kShort = 16, kMedium = 1024, kEnough = 16384;
  if (size < kShort || (inner > 1 && rows >= kEnough)) return 1;
  return size <= kMedium ? 32 : kThreads;
}

void Encode(Op& op, const char* kernel, int64_t kind, int64_t rows, int64_t size, int64_t inner, int64_t last,
            const std::vector<uint32_t>& uses) {
  const int64_t group = GroupFor(rows, size, inner);
  op.Add("rows", kernel + NameOf(keel::plugin::dtype_of(op.In(0))), Blocks(rows, kThreads / group), uses,
         {rows, group, kind, size, last});
}

void RunSoftmax(Op& op, Softmaxes kind) {
  const Lines lines(op.In(0), op.Int("axis"));
  Encode(op, "softmax_", kind, lines.outer * lines.inner, lines.size, lines.inner, lines.inner,
         {0, op.Result()});
}
void Softmax(Op& op) { RunSoftmax(op, kSoftmax); }
void LogSoftmax(Op& op) { RunSoftmax(op, kLogSoftmax); }
void LogSumExp(Op& op) { RunSoftmax(op, kLogSumExp); }

int64_t Epsilon(Op& op) { return std::bit_cast<int64_t>(op.Float("eps")); }
void RunNorm(Op& op, Norms kind, uint32_t b) {
  const keel_tensor x = op.In(0);
  Encode(op, "norm_", kind, product(x.shape, x.shape + x.ndim - 1), dim_from_end(x, 1), 1, Epsilon(op),
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
  constexpr const char* kRows = "rows by threads, parts of blocks or blocks";
  return {Row<Softmax>("softmax", kFloatTypes, kRows),
          Row<LogSoftmax>("log_softmax", kFloatTypes, kRows),
          Row<LogSumExp>("log_sum_exp", kFloatTypes, kRows),
          Row<LayerNorm>("layer_norm", kFloatTypes, kRows),
          Row<RmsNorm>("rms_norm", kFloatTypes, kRows),
          Row<BatchNorm>("batch_norm", kFloatTypes, "a thread for each element")};
}

}  // namespace keel_cuda
