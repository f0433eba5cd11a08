// loop.h: the catalogue's scan, with a body written as a function of terms.
#pragma once
#include <functional>

#include "plugins/onnx/ops/term.h"

namespace onnx_import {

using Terms = std::vector<Term>;

struct ScanOperands {
  Terms carried, invariants, scanned;  // scanned: each iteration gets one entry of the first dim
  bool reverse = false;
};

// The body gets terms of its own graph, in the order of the operands, and returns the carried values and
// then the values to stack. It may use no other terms.
using ScanBody = std::function<Terms(const Terms& carried, const Terms& invariants, const Terms& scanned)>;

// The last carried values, then the stacked ones.
Terms scan(Edit& e, const ScanOperands& operands, const ScanBody& body);

}  // namespace onnx_import
