// elementwise.h: nodes that compute each element from the elements at the same place, by the traits of the
// catalogue.
#pragma once
#include "plugins/passes/edit/edit.h"

namespace keel_passes {

bool is_elementwise(const Edit& e, NodeId n);
bool is_unary(const Edit& e, NodeId n);   // the result has the dims of operand 0; others are scalars
bool is_binary(const Edit& e, NodeId n);  // two operands, broadcast to each other

// Does an operand of these dims surely broadcast to the result's? Where the host must compare symbols in the
// run, an operand that leaves would take that check with it.
bool surely_spreads(const Edit& e, const Dims& dims, const Dims& result);

}  // namespace keel_passes
