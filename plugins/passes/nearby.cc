// nearby.cc: rewrites that are not the same bits but as near to the exact result: constants are combined
// in double and rounded once, a composite replaces the ops that its body is made of.
#include "passes.h"

namespace keel_passes {

void nearby(Edit& e) { apply(e, {weight_rules(), form_rules(), gelu_rules()}); }

}  // namespace keel_passes
