// compose.cc: replaces ops that spell out a composite of the catalogue by that composite if the device has an
// impl of it. Each rule of this folder starts at the node that produces the composite's result (pattern.h).
#include "plugins/passes/passes.h"

namespace keel_passes {

void compose(Edit& e) { apply(e, {softmax_rules(), norm_rules(), gelu_rules(), attention_rules()}); }

}  // namespace keel_passes
