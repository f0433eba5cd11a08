// back.h: what relu and max pooling send back, in a region: several nodes that are one loop on images
// in the layout that they have there.
#pragma once

#include "plugins/cpu/regions/region.h"

namespace keel_cpu {

// select(y > 0, dy, 0); with an index node dy is what the pool of that node sends back of its own dy:
// reshape(scatter_add(reshape(index), reshape(dy))). Either part may be missing.
struct Back {
  std::vector<uint32_t> nodes;  // in program order; others need only what the last one makes
  uint32_t index = kNone;       // the node max_pool_index
  uint32_t y = kNone;           // a value: what is pooled and, or, compared
  bool positive = false;        // only where y is greater than 0
  uint32_t dy = kNone, out = kNone;
};
std::vector<Back> FindBacks(const Body& body);
void EmitBack(Builder& b, const Back& back);

// pool.cc: images of dims x, results of dims y, all channels last; operands x, dy.
void KeepUnpool(const BodyNode& index, const Dims& x, const Dims& y, bool positive, keel_launch* launch);

}  // namespace keel_cpu
