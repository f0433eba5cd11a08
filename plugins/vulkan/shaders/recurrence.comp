// recurrence.comp: y[k] = a[k] * y[k - 1] + b[k] along lines x[outer, :, inner]. A thread takes a line, a step `share` elements of
// it; the y before them is in the result.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "op.glsl"
#include "elements.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 2) const uint REVERSE = 0;
NUMBERS { uint lines, size, inner, share; };

uint element(Numbers p, uint line, uint k) {
  return (line / p.inner * p.size + (REVERSE != 0 ? p.size - 1 - k : k)) * p.inner + line % p.inner;
}

void main() {
  Numbers p = READ_NUMBERS;
  uint begin = uint(push.step) * p.share, end = min(begin + p.share, p.size);
  for (uint line = first_element(); line < p.lines; line += grid_size()) {
    A y = begin > 0 ? load(RESULT, element(p, line, begin - 1)) : A(0);
    for (uint k = begin; k < end; k++) {
      uint at = element(p, line, k);
      A b = load(operand(1), at);
      y = k == 0 ? b : MULTIPLY_ADD(load(operand(0), at), y, b);
      store(RESULT, at, y);
    }
  }
}
