// simplify.cc: identities that hold for every value: of the sign of zero, infinities and NaNs (but for
// their payload) nothing is lost. Here is what needs code; the file passes.rules adds the rest to this pass.
#include "plugins/passes/passes.h"

namespace keel_passes {

void simplify(Edit& e) { apply(e, {moving_rules(), shape_rules()}); }

}  // namespace keel_passes
