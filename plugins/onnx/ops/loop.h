// loop.h: the catalogue's scan and cond, with bodies written as functions of terms.
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

// One of two bodies runs, on terms of its own graph for the operands; their results have the same type.
using Branch = std::function<Term(const Terms& operands)>;
Term cond(Edit& e, const Term& p, const Terms& operands, const Branch& then, const Branch& otherwise);

}  // namespace onnx_import
