// compare.h: comparisons of numbers, dims, lists and words, and whether a shape broadcasts to another. Lists
// are compared elementwise, a scalar with each entry; a comparison of lists holds if it holds for each entry.
#pragma once

#include "absl/functional/function_ref.h"
#include "kernel/language/opset/env.h"

namespace keel::opset {

// One operand of an elementwise operation: a list, or a scalar that acts as a list of any length.
struct Zip {
  const int64_t* data = nullptr;
  size_t size = 1;
  bool scalar = true;
  int64_t operator[](size_t i) const { return scalar ? data[0] : data[i]; }
};

// Both operands of `op`, and the length of the result.
absl::Status ZipBoth(const Env&, const Val& a, const Val& b, std::string_view op, Zip* x, Zip* y,
                     size_t* size);

bool IsNumberOrFloat(const Val&);
double AsFloat(const Val&);
absl::Status CompareVals(Env&, BinOp, const Val& a, const Val& b, Truth* out);

// Whether shape `a` broadcasts to shape `b`. Calls unknown(dim of a, dim of b) if that depends on symbols.
Truth Fits(const Env&, std::span<const int64_t> a, std::span<const int64_t> b,
           absl::FunctionRef<void(Dim, Dim)> unknown);

}  // namespace keel::opset
