// cumsum.comp: running sums along lines x[outer, :, inner], which are cut into pieces: step 0 adds the elements of each piece
// into scratch, step 1 replaces these sums by those of the pieces before, and step 2 writes the results. One piece: step 2 only.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "op.glsl"
#include "elements.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 2) const uint EXCLUSIVE = 0;
layout(constant_id = 3) const uint REVERSE = 0;
NUMBERS { uint lines, size, inner, pieces, share; };

uint element(Numbers p, uint line, uint k) {
  return (line / p.inner * p.size + (REVERSE != 0 ? p.size - 1 - k : k)) * p.inner + line % p.inner;
}
void add(Numbers p, uint task, uint begin, uint end) {
  A sum = A(0);
  for (uint k = begin; k < end; k++) sum += load(operand(0), element(p, task / p.pieces, k));
  Wide(SCRATCH).v[task] = sum;
}
void accumulate(Numbers p, uint line) {
  A sum = A(0);
  for (uint k = 0; k < p.pieces; k++) {
    A next = sum + Wide(SCRATCH).v[line * p.pieces + k];
    Wide(SCRATCH).v[line * p.pieces + k] = sum;
    sum = next;
  }
}
void save(Numbers p, uint task, uint begin, uint end) {
  A sum = p.pieces > 1 ? Wide(SCRATCH).v[task] : A(0);
  for (uint k = begin; k < end; k++) {
    uint at = element(p, task / p.pieces, k);
    A next = sum + load(operand(0), at);
    store(RESULT, at, EXCLUSIVE != 0 ? sum : next);
    sum = next;
  }
}

void main() {
  Numbers p = READ_NUMBERS;
  uint count = push.step == 1 ? p.lines : p.lines * p.pieces;
  for (uint task = first_element(); task < count; task += grid_size()) {
    uint begin = task % p.pieces * p.share, end = min(begin + p.share, p.size);
    if (push.step == 0) add(p, task, begin, end);
    if (push.step == 1) accumulate(p, task);
    if (push.step == 2) save(p, task, begin, end);
  }
}
