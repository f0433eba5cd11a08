// named.h: converters for operators that are one Keel op with the same operands.
#pragma once
#include "plugins/onnx/import/call.h"

namespace onnx_import {

struct OpName {
  char text[24] = {};
  template <size_t n>
  constexpr OpName(const char (&s)[n]) {  // NOLINT: intentionally implicit
    for (size_t i = 0; i < n; i++) text[i] = s[i];
  }
};

template <OpName op>
void same(Call& c) {
  c.done(op.text, c.all());
}

// Any number of operands, folded from the left: Sum, Max, Min.
template <OpName op>
void left_fold(Call& c) {
  if (c.n_in() == 0) c.invalid("expected at least one operand");
  if (c.n_in() == 1) return c.alias(0, 0);
  keel_value v = c.in(0);
  for (size_t i = 1; i + 1 < c.n_in(); i++) v = c.e.op(op.text, {v, c.in(i)});
  c.done(op.text, {v, c.in(c.n_in() - 1)});
}

}  // namespace onnx_import
