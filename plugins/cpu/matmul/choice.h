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
// Time of the own loops in percent of oneDNN's, by the same choice; 100 where they need no measurement.
double OwnPercent(const MatmulShape& shape, bool constant);
// For sums of a convolution with constant weights: the faster side, without a margin for ops after it.
bool AreOwnLoopsFaster(const MatmulShape& shape);

}  // namespace keel_cpu
