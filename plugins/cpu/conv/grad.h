// grad.h: shared by the gradients of convolution alone (grad.cc) and in a region (regions/conv_grad.cc).
#pragma once

#include "plugins/cpu/conv/conv.h"
#include "plugins/cpu/onednn/cut.h"
#include "plugins/cpu/onednn/onednn.h"

namespace keel_cpu {

inline constexpr int64_t kSmallGrad = 16 * 1024;  // multiplications, below which the plugin's loops are used
// In the unit of PartWork(): gradients run at about half the speed, at an eighth with few channels, and all
// data is copied.
int64_t GradWork(const Conv& s);
// Shares of the images for a weight gradient, one thread each; at_once 1: not split so. oneDNN itself would
// split them in the same way, but its threads then spin on each other.
struct Shares {
  int at_once = 1;
  std::vector<Box> images;  // in rounds of at_once
};
Shares SharesOf(const Conv& s);
// The forward convolution that oneDNN requires as a hint for its gradients.
dnnl::convolution_forward::primitive_desc Hint(const Geometry& g);

}  // namespace keel_cpu
