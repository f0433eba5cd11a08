// grad.h: what the gradients of convolution alone (grad.cc) and in a region (regions/conv_grad.cc) share.
#pragma once

#include "plugins/cpu/conv/conv.h"
#include "plugins/cpu/onednn/cut.h"
#include "plugins/cpu/onednn/onednn.h"

namespace keel_cpu {

inline constexpr int64_t kSmallGrad = 16 * 1024;  // multiplications, below which our loops do
// As PartWork() counts: backwards is some half as fast, with few channels an eighth; and all data are moved.
int64_t GradWork(const Conv& s);
// Images of a gradient of weights in shares of one thread each, so many of which run at once: 1 where threads
// are not shared out so. oneDNN itself would share them out likewise, but its threads then wait for each
// other in a spin.
struct Shares {
  int at_once = 1;
  std::vector<Box> images;  // in rounds of at_once
};
Shares SharesOf(const Conv& s);
// The forward convolution that oneDNN wants to know for its gradients.
dnnl::convolution_forward::primitive_desc Hint(const Geometry& g);

}  // namespace keel_cpu
