// suppress.cc: non_max_suppression.
#include <algorithm>

#include "shader_op.h"

namespace vulkan {
namespace {

constexpr uint32_t kGroup = 64;  // threads, shaders/suppress.comp

void Suppress(Op& op) {
  const keel_tensor scores = op.In(1);
  struct {
    uint32_t rows, classes, n, size, rounds, last;
  } n = {};
  n.classes = static_cast<uint32_t>(scores.shape[1]), n.n = static_cast<uint32_t>(scores.shape[2]);
  n.rows = Product32(scores.shape, scores.shape + 2), n.size = static_cast<uint32_t>(op.Int("size"));
  n.rounds = std::max(1u, kMostIterations / (2 * CeilDiv(std::max(1u, n.n), kGroup) + 8));
  n.last = CeilDiv(n.size, n.rounds) + 1;
  op.work.Set(n);
  const VkPipeline pipeline =
      op.Numbers("suppress", op.In(0), {op.In(2).dtype.bits / 8u, op.Int("center") != 0});
  const uint64_t threads = uint64_t{n.rows} * std::max({n.n, 3 * n.size, 1u});
  op.Then(pipeline, ThreadGroups(std::max<uint64_t>(threads, 1)), 0);
  for (uint32_t step = 1; n.rows && step <= n.last; step++) op.Then(pipeline, ThreadGroups(n.rows, 1), step);
  op.work.scratch_bytes = 4 * (uint64_t{n.rows} * (n.n + 1 + n.size));
}

}  // namespace

Impls SuppressImpls() {
  return {NumbersRow<Suppress>("non_max_suppression", nullptr, "group for each class")};
}

}  // namespace vulkan
