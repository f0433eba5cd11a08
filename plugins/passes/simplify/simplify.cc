// simplify.cc: identities that hold for all values, including the sign of zero, infinities and NaN (except
// its payload). These are the rules in code; passes.rules adds the others.
#include "plugins/passes/passes.h"

namespace keel_passes {

void simplify(Edit& e) { apply(e, {moving_rules(), shape_rules()}); }

}  // namespace keel_passes
