// tiles.h: the grid of shaders/tiles.glsl and cooperative.glsl.
#ifndef KEEL_PLUGINS_VULKAN_TILES_H
#define KEEL_PLUGINS_VULKAN_TILES_H
#include <algorithm>

#include "shader_op.h"

namespace vulkan {

struct Tiles {
  uint32_t rows = 1, columns = 1;  // of a work group, in 64 results
  bool cooperative = false;
};

// f32 has shared memory for larger tiles, which read less.
inline Tiles TilesFor(const Op& op, const keel_tensor& t, uint32_t rows, uint32_t columns) {
  if (keel_dt_of(&t) == KEEL_F16 && op.device->has.matrices.rows) return {.cooperative = true};
  const bool large = IsFloat(t) && t.dtype.bits <= 32;
  return {large && rows > 64 ? 2u : 1u, large && columns > 64 ? 2u : 1u};
}
// The shader for elements of t: constants from number 4 on.
inline VkPipeline TilePipeline(Op& op, const char* shader, const keel_tensor& t, const Tiles& tiles,
                               const Constants& constants) {
  if (tiles.cooperative) return op.Cooperative(shader, constants);
  Constants all = {tiles.rows, tiles.columns};
  all.insert(all.end(), constants.begin(), constants.end());
  return op.Numbers(shader, t, all);
}
// KEEL_UNIMPLEMENTED for more tiles than a grid has.
inline Groups TileGrid(Op& op, Tiles tiles, uint32_t rows, uint32_t columns, uint32_t batches) {
  Groups groups = {CeilDiv(columns, 64 * tiles.columns), CeilDiv(rows, 64 * tiles.rows),
                   std::min(batches, kMostGroups)};
  if (!groups.y || !batches) groups.x = 0;
  if (groups.x > kMostGroups || groups.y > kMostGroups)
    op.Fail(KEEL_UNIMPLEMENTED,
            std::string(op.host->node_op(op.node)) + ": more than 65535 tiles in a direction");
  return groups;
}

// A step for each part of `depth` of the inner dim; ReserveSums: scratch for the sums between them.
inline void ReserveSums(Op& op, uint32_t inner, uint32_t depth) {
  if (inner > depth)
    op.work.scratch_bytes = std::max(op.work.scratch_bytes, 8 * uint64_t{Count32(op.Out(0))});
}
inline void Steps(Op& op, VkPipeline pipeline, Groups groups, uint32_t inner, uint32_t depth,
                  uint64_t numbers) {
  ReserveSums(op, inner, depth);
  for (uint64_t step = 0; !step || step * depth < inner; step++) op.Then(pipeline, groups, step, numbers);
}
inline constexpr uint32_t kTileDepth = 8192, kThreadDepth = kMostIterations;

}  // namespace vulkan
#endif
