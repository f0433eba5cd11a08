// nearby.cc: rewrites that are not the same bits but as near to the exact result: constants are combined
// in double and rounded once. Powers, roots, sigmoid and silu are in passes.rules. Gelu is found here too
// (compose/gelu.cc), for its half would go into the weights of the product that follows.
#include "plugins/passes/passes.h"

namespace keel_passes {

void nearby(Edit& e) { apply(e, {weight_rules(), gelu_rules()}); }

}  // namespace keel_passes
