// require.h: the `check` clauses of ops.
#pragma once

#include "kernel/language/opset/env.h"

namespace keel::opset {

// An error if the check fails, a recorded check if it depends on symbols.
absl::Status Require(const CheckDef&, Env&);

}  // namespace keel::opset
