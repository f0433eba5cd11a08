// compare.h: statements about values: comparisons of numbers, dims, lists and words, and whether a shape
// broadcasts to another. Lists zip, a scalar spreads; a comparison of lists holds if each entry does.
#pragma once

#include "kernel/opset/eval.h"

namespace keel::opset {

// One operand of a zip: a list, or a scalar that stands for a list of any length.
struct Zip {
  const int64_t* data = nullptr;
  size_t size = 1;
  bool scalar = true;
  int64_t operator[](size_t i) const { return scalar ? data[0] : data[i]; }
};

// Both operands of `op`, and how long their zip is.
absl::Status ZipBoth(const Env&, const Val& a, const Val& b, std::string_view op, Zip* x, Zip* y,
                     size_t* size);

bool IsNumberOrFloat(const Val&);
double AsFloat(const Val&);
absl::Status CompareVals(Env&, BinOp, const Val& a, const Val& b, Truth* out);

// fits(a, b): does shape `a` broadcast to shape `b`?
absl::Status EvalFits(const Expr&, Env&, Truth* out);

}  // namespace keel::opset
