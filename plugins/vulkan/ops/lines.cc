// lines.cc: ops along one axis: arg_max, arg_min, cumsum, linear_recurrence, top_k.
#include <algorithm>
#include <bit>
#include <cmath>

#include "shader_op.h"

namespace vulkan {
namespace {

constexpr uint32_t kLocalRow = 1024;      // shaders/sort.comp
constexpr uint32_t kBestBytes = 16;       // at most; shaders/arg.comp
constexpr uint32_t kManyLines = 1024;     // for a thread each
constexpr uint32_t kSharedPiece = 65536;  // of a line, for a work group

void Arg(Op& op) {
  const keel_tensor x = op.In(0);
  const Lines lines(x, op.Int("axis"));
  if (!lines.size && lines.count())
    op.work.fails = std::string(op.host->node_op(op.node)) + ": the dim has no elements";
  const uint32_t grouped = lines.size >= 64 && (lines.count() < kManyLines || lines.size > kMostIterations);
  const struct {
    uint32_t lines, size, inner, pieces;
  } n = {lines.count(), lines.size, lines.inner, grouped ? (lines.size - 1) / kSharedPiece + 1 : 1};
  const uint32_t most = op.Is("arg_max"), last = op.Int("last") != 0;
  op.work.Set(n);
  op.work.Threads(uint64_t{n.lines} * n.pieces, grouped ? 1 : 64);
  op.work.pipeline = op.Numbers("arg", x, {most, last, grouped});
  if (n.pieces == 1) return;
  op.work.scratch_bytes = uint64_t{kBestBytes} * n.lines * n.pieces;
  op.Then(op.Numbers("arg", x, {most, last, 0}), ThreadGroups(n.lines), 1);
}

void Cumsum(Op& op) {
  const keel_tensor x = op.In(0);
  const Lines lines(x, op.Int("axis"));
  const uint32_t share = lines.count() < kManyLines || lines.size > kMostIterations
                             ? std::max(64u, static_cast<uint32_t>(std::sqrt(lines.size)))
                             : std::max(1u, lines.size);
  const struct {
    uint32_t lines, size, inner, pieces, share;
  } n = {lines.count(), lines.size, lines.inner, std::max(1u, CeilDiv(lines.size, share)), share};
  op.work.Set(n);
  op.work.Threads(uint64_t{n.lines} * n.pieces);
  op.work.pipeline = op.Numbers("cumsum", x, {op.Int("exclusive") != 0, op.Int("reverse") != 0});
  op.work.step = n.pieces > 1 ? 0 : 2;
  if (n.pieces == 1) return;
  op.work.scratch_bytes = uint64_t{8} * n.lines * n.pieces;
  op.Then(op.work.pipeline, ThreadGroups(n.lines), 1);
  op.Then(op.work.pipeline, op.work.groups, 2);
}

// A step takes a share of each line.
void Recurrence(Op& op) {
  const keel_tensor a = op.In(0);
  const Lines lines(a, op.Int("axis"));
  const struct {
    uint32_t lines, size, inner, share;
  } n = {lines.count(), lines.size, lines.inner, kMostIterations};
  op.work.Set(n);
  const VkPipeline pipeline = op.Numbers("recurrence", a, {op.Int("reverse") != 0});
  const uint32_t steps = std::max(1u, CeilDiv(n.size, n.share));
  for (uint32_t step = 0; step < steps; step++) op.Then(pipeline, ThreadGroups(n.lines), step);
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
  if (uint64_t{n.rows} * filled > UINT32_MAX)
    op.Fail(KEEL_UNIMPLEMENTED, "top_k: more than 4294967295 elements");
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
          NumbersRow<Cumsum>("cumsum", kNumTypes, "sums of pieces"),
          NumbersRow<Recurrence>("linear_recurrence", kNumTypes, "a thread for each line"),
          NumbersRow<TopK>("top_k", kNumTypes, "bitonic sort")};
}

}  // namespace vulkan
