// compose.cc: ops that spell out a composite of the catalogue become that composite, where the device has an
// impl of its own for it. The rules are in compose_*.cc; each starts at the node that gives the composite's
// result (pattern.h).
#include "plugins/passes/passes.h"

namespace keel_passes {

void compose(Edit& e) { apply(e, {softmax_rules(), norm_rules(), gelu_rules(), attention_rules()}); }

}  // namespace keel_passes
