// loop.cc: less control flow: what is known to run, in its place; loops with less in them.
#include "passes.h"

namespace keel_passes {

void loop(Edit& e) { apply(e, {known_rules(), motion_rules()}); }

}  // namespace keel_passes
