// cast_loops.h: conversions between all dtypes, as loops.
#pragma once

#include "plugins/cpu/elementwise/unary_loops.h"

namespace keel_cpu {

// Null if there is none: for storage dtypes (storage.cc).
UnaryLoop FindCast(keel_dt from, keel_dt to);

}  // namespace keel_cpu
