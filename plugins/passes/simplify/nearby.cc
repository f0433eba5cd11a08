// nearby.cc: rewrites whose results are as close to the exact result, with other bits: constants are combined
// in double and rounded once. Powers, roots, sigmoid and silu are in passes.rules. Gelu is recognised here
// too (compose/gelu.cc), as its factor 0.5 would otherwise be folded into the weights of the following
// product.
#include "plugins/passes/passes.h"

namespace keel_passes {

void nearby(Edit& e) { apply(e, {weight_rules(), gelu_rules()}); }

}  // namespace keel_passes
