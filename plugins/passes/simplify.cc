// simplify.cc: identities that hold for every value: of the sign of zero, infinities and NaNs (but for
// their payload) nothing is lost. x + 0 is not among them (-0 + 0 is 0); x - 0 and x * 1 are.
#include "passes.h"

namespace keel_passes {

void simplify(Edit& e) { apply(e, {moving_rules(), shape_rules(), value_rules()}); }

}  // namespace keel_passes
