// tiles.h: the grid of shaders/tiles.glsl.
#ifndef KEEL_PLUGINS_VULKAN_TILES_H
#define KEEL_PLUGINS_VULKAN_TILES_H
#include <algorithm>

#include "shader_op.h"

namespace vulkan {

struct Tiles {
  uint32_t rows, columns;  // of a work group, in 64 results
};

// f32 has shared memory for larger tiles, which read less.
inline Tiles TilesFor(const keel_tensor& t, uint32_t rows, uint32_t columns) {
  const bool large = IsFloat(t) && t.dtype.bits <= 32;
  return {large && rows > 64 ? 2u : 1u, large && columns > 64 ? 2u : 1u};
}
// KEEL_UNIMPLEMENTED for more tiles than a grid has.
inline void TileGrid(Op& op, Tiles tiles, uint32_t rows, uint32_t columns, uint32_t batches) {
  auto count = [](uint32_t n, uint32_t tile) { return (n + 64 * tile - 1) / (64 * tile); };
  op.work.groups = {count(columns, tiles.columns), count(rows, tiles.rows), std::min(batches, kMostGroups)};
  if (!op.work.groups.y || !batches) op.work.groups.x = 0;
  if (op.work.groups.x > kMostGroups || op.work.groups.y > kMostGroups)
    op.Fail(KEEL_UNIMPLEMENTED,
            std::string(op.host->node_op(op.node)) + ": more than 65535 tiles in a direction");
}

// Takes the inner dim in steps of `depth`, with the sums between them in scratch.
inline void StepInner(Op& op, uint32_t inner, uint32_t depth) {
  if (inner <= depth) return;
  op.work.scratch_bytes = 8 * uint64_t{Count32(op.Out(0))};
  const Dispatch first = op.work;
  for (uint64_t step = 1; step * depth < inner; step++) op.Then(first.pipeline, first.groups, step);
}
inline constexpr uint32_t kTileDepth = 8192, kThreadDepth = kMostIterations;

}  // namespace vulkan
#endif
