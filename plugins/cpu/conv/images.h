// images.h: a convolution of f32 images with channels last by the kernels of the own products
// (matmul/loops.h): the cells that a block of results sees, times panels of the weights.
#pragma once

#include "plugins/cpu/conv/conv.h"

namespace keel_cpu {

// Constant weights of one group in panels of so many channels of the result, padded with zeros.
uint64_t ImagePanelBytes(const Conv& s, int64_t panel);
void PackImagePanels(const Conv& s, int64_t panel, const float* w, float* to);
// Operands: x and the summand, if `end` adds one, which may be the result's memory. `panels`, those of
// MatmulLoops(KEEL_F32), packed by the function above, outlive the launch.
void KeepImages(const Conv& s, const float* panels, ConvEnd end, keel_launch* launch);

}  // namespace keel_cpu
