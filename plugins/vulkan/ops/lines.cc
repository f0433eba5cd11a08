// lines.cc: ops along one axis: arg_max, arg_min, cumsum, top_k.
#include <bit>

#include "op.h"

namespace vulkan {
namespace {

constexpr uint32_t kManyLines = 1024;  // for a thread each
constexpr uint32_t kLocalRow = 1024;   // shaders/sort.comp

// Whether a work group takes a line, or a thread.
uint32_t Grouped(const Lines& lines) { return lines.size >= 64 && lines.count() < kManyLines; }

void AlongLines(Op& op, const char* shader, const Lines& lines, uint32_t first, uint32_t second) {
  const uint32_t grouped = Grouped(lines);
  const struct {
    uint32_t lines, size, inner;
  } numbers = {lines.count(), lines.size, lines.inner};
  op.work.Set(numbers);
  op.work.Threads(numbers.lines, grouped ? 1 : 64);
  op.work.pipeline = op.Numbers(shader, op.In(0), {first, second, grouped});
}

void Arg(Op& op) {
  const Lines lines(op.In(0), op.Int("axis"));
  if (!lines.size && lines.count())
    op.Fail(KEEL_RANGE, std::string(op.host->node_op(op.node)) + ": the dim has no elements");
  AlongLines(op, "arg", lines, op.Is("arg_max"), op.Int("last") != 0);
}
void Cumsum(Op& op) {
  const Lines lines(op.In(0), op.Int("axis"));
  AlongLines(op, "cumsum", lines, op.Int("exclusive") != 0, op.Int("reverse") != 0);
}

void TopK(Op& op) {
  const keel_tensor x = op.In(0), y = op.Out(0);
  const uint32_t size = static_cast<uint32_t>(x.shape[x.ndim - 1]), filled = std::bit_ceil(size);
  const struct {
    uint32_t rows, size, filled, k;
  } n = {Product32(x.shape, x.shape + x.ndim - 1), size, filled, static_cast<uint32_t>(y.shape[y.ndim - 1])};
  const uint32_t largest = op.Int("largest") != 0, local = filled <= kLocalRow;
  const VkPipeline pipeline = op.Numbers("sort", x, {largest, local});
  op.work.Set(n);
  op.work.pipeline = pipeline;
  op.work.Threads(local ? n.rows : uint64_t{n.rows} * filled, local ? 1 : 64);
  if (local || !n.rows) return;
  if (uint64_t{n.rows} * filled > UINT32_MAX) op.Fail(KEEL_UNIMPLEMENTED, "top_k: more than 4294967295 elements");
  op.work.scratch_bytes = uint64_t{4} * n.rows * filled;
  const Groups all = op.work.groups;
  for (uint64_t k = 2; k <= filled; k *= 2)
    for (uint64_t j = k / 2; j > 0; j /= 2) op.Then(pipeline, all, k << 32 | j);
  op.Then(pipeline, all, 1);
}

}  // namespace

Impls LineImpls() {
  return {NumbersRow<Arg>("arg_max", kNumTypes, "arg by groups or threads"),
          NumbersRow<Arg>("arg_min", kNumTypes, "arg by groups or threads"),
          NumbersRow<Cumsum>("cumsum", kNumTypes, "sums by groups or threads"),
          NumbersRow<TopK>("top_k", kNumTypes, "bitonic sort")};
}

}  // namespace vulkan
