// conv_grad.h: what the gradients of convolution alone (conv_grad.cc) and in a region (region_grad.cc) share.
#pragma once

#include "conv.h"
#include "onednn.h"

namespace keel_cpu {

inline constexpr int64_t kSmallGrad = 16 * 1024;  // multiplications, below which our loops do
// As PartWork() counts: backwards is some half as fast, with few channels an eighth; and all data are moved.
int64_t GradWork(const Conv& s);
// The forward convolution that oneDNN wants to know for its gradients.
dnnl::convolution_forward::primitive_desc Hint(const Geometry& g);

}  // namespace keel_cpu
