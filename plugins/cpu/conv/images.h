// images.h: a convolution of f32 images with channels last by the kernels of the own products
// (matmul/loops.h): the cells that a block of results sees, times panels of the weights.
#pragma once

#include "plugins/cpu/conv/conv.h"

namespace keel_cpu {

// Of one group, with constant weights.
uint64_t ImagePanelBytes(const Conv& s);
void PackImagePanels(const Conv& s, const float* w, float* to);
// Operands: x and the summand, if `end` adds one, which may be the result's memory. `panels`, packed by the
// function above, outlives the launch.
void KeepImages(const Conv& s, const float* panels, ConvEnd end, keel_launch* launch);

}  // namespace keel_cpu
