// choice.h: oneDNN or the plugin's own loops for a product of f32, and the reason.
#pragma once

#include <string>
#include <vector>

#include "plugins/cpu/matmul/shape.h"

namespace keel_cpu {

// A reason for one of the two; rows.cc makes an impl of each, so `keel plan` shows the name.
struct ProductReason {
  bool onednn;
  std::string name;
};
// For the class of processor that code is selected for: small products, a forced side, and two for each line
// of choices.inc, by whether b is a constant.
const std::vector<ProductReason>& ProductReasons();

// The index of the reason for a shape: the measured product of the nearest one (choices.inc). constant: b is
// one, and is packed beforehand.
size_t ReasonFor(const MatmulShape& shape, bool constant);
bool PrefersOneDnn(const MatmulShape& shape, bool constant);
// For a convolution whose sums are such a product by constant weights, by whose loops it is computed with the
// ops after it: the faster side, whatever it wins.
bool AreOwnLoopsFaster(const MatmulShape& shape);

}  // namespace keel_cpu
