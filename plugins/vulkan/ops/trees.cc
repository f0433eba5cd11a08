// trees.cc: tree_ensemble. An index out of range is stored in the fault bytes.
#include <algorithm>

#include "shader_op.h"

namespace vulkan {
namespace {

constexpr uint32_t kGroup = 64;  // threads, shaders/trees.comp

void Trees(Op& op) {
  const keel_tensor x = op.In(0), y = op.Out(0), weight = op.In(7);
  struct {
    uint64_t start;
    uint32_t rows, features, nodes, trees, leaves, width, size, batch, batches;
  } n = {};
  const std::string_view mode = op.Text("mode");
  n.start = mode == "add" ? 0 : mode == "max" ? LowestBits(y) : HighestBits(y);
  n.rows = static_cast<uint32_t>(x.shape[0]), n.features = static_cast<uint32_t>(x.shape[1]);
  n.nodes = Count32(op.In(1)), n.trees = Count32(op.In(5));
  n.leaves = static_cast<uint32_t>(weight.shape[0]), n.width = static_cast<uint32_t>(weight.shape[1]);
  n.size = static_cast<uint32_t>(y.shape[1]);
  if (n.width > kMostIterations)
    op.Fail(KEEL_UNIMPLEMENTED, "tree_ensemble: leaves of " + std::to_string(n.width) + " weights");
  // A thread walks a tree of each kGroup, down to some depth, and combines the weights of all.
  n.batch = kGroup * std::clamp(kMostIterations / (256 + kGroup * CeilDiv(n.width, kGroup)), 1u, 64u);
  n.batches = CeilDiv(n.trees, n.batch);
  op.work.Set(n);
  const uint32_t combine = mode == "add" ? 0 : mode == "max" ? 1 : 2;
  const VkPipeline pipeline = op.Numbers("trees", x, {op.In(2).dtype.bits / 8u, combine});
  const uint32_t count = Count32(y);
  op.Then(pipeline, ThreadGroups(count ? std::max({count, n.nodes, n.trees}) : 0), 0);
  const uint64_t steps = count ? uint64_t{n.batches} * CeilDiv(n.rows, kMostGroups) : 0;
  for (uint64_t step = 1; step <= steps; step++) op.Then(pipeline, ThreadGroups(n.rows, 1), step);
}

}  // namespace

Impls TreeImpls() { return {NumbersRow<Trees>("tree_ensemble", nullptr, "group for each row")}; }

}  // namespace vulkan
