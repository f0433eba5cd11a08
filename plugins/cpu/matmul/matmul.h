// matmul.h: the geometry of a matmul node, shared by the plugin's loops and by regions.
#pragma once

#include "plugins/cpu/matmul/shape.h"

namespace keel_cpu {

MatmulShape ReadMatmul(const Node& node);

// False: a small f32 product, for the plugin's loops.
bool PrefersOneDnn(const MatmulShape& shape);

}  // namespace keel_cpu
