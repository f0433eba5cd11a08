// matmul.h: the geometry of a matmul node, shared by the plugin's loops and by regions.
#pragma once

#include "plugins/cpu/matmul/shape.h"

namespace keel_cpu {

MatmulShape ReadMatmul(const Node& node);

}  // namespace keel_cpu
