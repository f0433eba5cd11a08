// choice.h: oneDNN or the plugin's own loops for a product of f32.
#pragma once

#include "plugins/cpu/matmul/shape.h"

namespace keel_cpu {

// By the measured product of the nearest shape on this class of processor (choices.inc). constant: b is one,
// and is packed beforehand.
bool PrefersOneDnn(const MatmulShape& shape, bool constant);

}  // namespace keel_cpu
