// elementwise.h: nodes that compute each element from the elements at the same place, by the traits of the
// catalogue.
#pragma once
#include "plugins/passes/edit/edit.h"

namespace keel_passes {

bool is_elementwise(const Edit& e, NodeId n);
bool is_unary(const Edit& e, NodeId n);   // the result has the dims of operand 0; others are scalars
bool is_binary(const Edit& e, NodeId n);  // two operands, broadcast to each other

// Whether these dims are known to broadcast to the result's. If that depends on symbols, the run checks it,
// and removing the operand would remove the check, too.
bool surely_broadcasts(const Edit& e, const Dims& dims, const Dims& result);

}  // namespace keel_passes
