// pointwise.h: a convolution of plain images with a 1x1 window by the kernels of the own products
// (matmul/loops.h), each image a matrix of channels by pixels. Panels are of the image's pixels, or of the
// weights if the pixels would leave much of their last panel empty.
#pragma once

#include "plugins/cpu/common.h"

namespace keel_cpu {

struct PointwiseShape {
  int64_t images, channels, results, pixels;
  int64_t Work() const { return images * channels * results * pixels; }
};

enum class PointwiseWay : uint8_t { kOther, kImagePanels, kWeightPanels };
// kOther: oneDNN is faster. constant: the weights are.
PointwiseWay WayOf(const PointwiseShape& s, bool constant);
int64_t WeightPanel();  // results in a panel of weights

// Operands of the launch: images [n, c, pixels], and weights [o, c] or, by panels, [o / panel, c, panel].
// shift: one number for each result, or none.
void KeepPointwise(const PointwiseShape& s, PointwiseWay way, const std::vector<float>& shift,
                   keel_launch* launch);

}  // namespace keel_cpu
