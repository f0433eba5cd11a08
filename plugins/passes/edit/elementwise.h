// elementwise.h: which ops compute each element from the elements at the same place. The host does not
// tell the catalogue's traits, so they are listed once, here.
#pragma once
#include "plugins/passes/edit/edit.h"

namespace keel_passes {

enum : uint32_t {
  kUnary = 1,     // one operand
  kBinary = 2,    // two, broadcast
  kSpreads = 16,  // operands broadcast to each other
  kPostOp = 32,   // what libraries of products and convolutions apply to their results
};
// 0: not elementwise.
uint32_t elementwise(std::string_view op);

// Does an operand of these dims surely broadcast to the result's? Where the host must compare symbols in the
// run, an operand that leaves would take that check with it.
bool surely_spreads(const Edit& e, const Dims& dims, const Dims& result);

}  // namespace keel_passes
