// pass.cc: less control flow: what is known to run, in its place; loops with less in them.
#include "plugins/passes/passes.h"

namespace keel_passes {

void loop(Edit& e) { apply(e, {known_rules(), motion_rules()}); }

}  // namespace keel_passes
