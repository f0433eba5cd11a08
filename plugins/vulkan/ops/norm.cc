// norm.cc: composites that read a row several times: softmax, log_softmax, log_sum_exp, layer_norm, rms_norm;
// batch_norm. Softmax of f64 runs its body: GLSL has no exp of doubles.
#include "shader_op.h"

namespace vulkan {
namespace {

enum Softmaxes : uint32_t { kSoftmax, kLogSoftmax, kLogSumExp };  // shaders/softmax.comp
enum Norms : uint32_t { kLayer, kRms };                           // shaders/norm.comp

// Whether a work group takes a row, or a thread. KEEL_UNIMPLEMENTED for rows that are too long; the body
// splits these.
uint32_t Grouped(Op& op, uint32_t rows, uint32_t size) {
  if (size > 64 * kMostIterations)
    op.Fail(KEEL_UNIMPLEMENTED,
            std::string(op.host->node_op(op.node)) + ": rows of " + std::to_string(size) + " elements");
  return size >= 64 && (rows < 4096 || size > kMostIterations);
}

void RunSoftmax(Op& op, Softmaxes kind) {
  const Lines lines(op.In(0), op.Int("axis"));
  const struct { uint32_t rows, size, inner; } numbers = {lines.count(), lines.size, lines.inner};
  const uint32_t grouped = Grouped(op, numbers.rows, numbers.size);
  op.work.Set(numbers);
  op.work.Threads(numbers.rows, grouped ? 1 : 64);
  op.work.pipeline = op.Numbers("softmax", op.In(0), {kind, grouped});
}
void Softmax(Op& op) { RunSoftmax(op, kSoftmax); }
void LogSoftmax(Op& op) { RunSoftmax(op, kLogSoftmax); }
void LogSumExp(Op& op) { RunSoftmax(op, kLogSumExp); }

void RunNorm(Op& op, Norms kind) {
  const keel_tensor x = op.In(0);
  const struct {
    uint64_t epsilon;
    uint32_t rows, size;
  } numbers = {BitsOf(x, op.Float("eps")), Product32(x.shape, x.shape + x.ndim - 1),
               static_cast<uint32_t>(x.shape[x.ndim - 1])};
  const uint32_t grouped = Grouped(op, numbers.rows, numbers.size);
  op.work.Set(numbers);
  op.work.Threads(numbers.rows, grouped ? 1 : 64);
  op.work.pipeline = op.Numbers("norm", x, {kind, grouped});
}
void LayerNorm(Op& op) { RunNorm(op, kLayer); }
void RmsNorm(Op& op) { RunNorm(op, kRms); }

void BatchNorm(Op& op) {
  const keel_tensor x = op.In(0);
  const struct {
    uint64_t epsilon;
    uint32_t count, channels, pixels;
  } numbers = {BitsOf(x, op.Float("eps")), Count32(x), static_cast<uint32_t>(x.shape[1]),
               Product32(x.shape + 2, x.shape + x.ndim)};
  op.work.Set(numbers);
  op.work.Threads(numbers.count);
  op.work.pipeline = op.Numbers("batch_norm", x, {});
}

}  // namespace

Impls NormImpls() {
  constexpr const char *kRows = "rows by groups or threads", *kShort = "T=f16|bf16|f32";
  return {NumbersRow<Softmax>("softmax", kShort, kRows),
          NumbersRow<LogSoftmax>("log_softmax", kShort, kRows),
          NumbersRow<LogSumExp>("log_sum_exp", kShort, kRows),
          NumbersRow<LayerNorm>("layer_norm", kFloatTypes, kRows),
          NumbersRow<RmsNorm>("rms_norm", kFloatTypes, kRows),
          NumbersRow<BatchNorm>("batch_norm", kFloatTypes, "thread for each element")};
}

}  // namespace vulkan
