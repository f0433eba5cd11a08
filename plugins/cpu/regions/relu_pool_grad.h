// relu_pool_grad.h: the gradients of relu and max pooling in a region: several nodes that become one loop
// over images in their current layout.
#pragma once

#include "plugins/cpu/regions/region.h"

namespace keel_cpu {

// select(y > 0, dy, 0). If `index` is set, dy is itself the gradient of that max pooling:
// reshape(scatter_add(reshape(index), reshape(dy))). Either of the two may be absent.
struct ReluPoolGrad {
  std::vector<uint32_t> nodes;  // in program order; only the last one's result is used elsewhere
  uint32_t index = kNone;       // the max_pool_index node
  uint32_t y = kNone;           // the value that is pooled, compared, or both
  bool positive = false;        // masked by y > 0
  uint32_t dy = kNone, out = kNone;
};
std::vector<ReluPoolGrad> FindReluPoolGrads(const Body& body);
void EmitReluPoolGrad(Builder& b, const ReluPoolGrad& grad);

// pool.cc: images of dims x, results of dims y, all channels last; operands x, dy.
void KeepUnpool(const BodyNode& index, const Dims& x, const Dims& y, bool positive, keel_launch* launch);

}  // namespace keel_cpu
