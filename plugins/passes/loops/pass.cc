// pass.cc: the pass `loop`: control flow that is known is inlined, loops lose invariant and unused values.
#include "plugins/passes/passes.h"

namespace keel_passes {

void loop(Edit& e) { apply(e, {known_control_flow_rules(), motion_rules()}); }

}  // namespace keel_passes
