// arith.h: arithmetic and comparison of two dims.
#pragma once

#include "kernel/language/opset/env.h"

namespace keel::opset {

// a OP b for numbers or dims; overflow is an error.
absl::Status Arith(Env&, BinOp, int64_t a, int64_t b, int64_t* out);
absl::Status MaxMin(Env&, bool max, int64_t a, int64_t b, int64_t* out);
Truth CompareDims(const Env&, BinOp, int64_t a, int64_t b);

}  // namespace keel::opset
