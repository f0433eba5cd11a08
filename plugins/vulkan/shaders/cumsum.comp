// cumsum.comp: running sums along lines x[outer, :, inner]. GROUPED: a work group for each line: a thread adds a part of it, and
// then begins with the sum of the parts before; otherwise a thread for each line.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "op.glsl"
#include "elements.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 2) const uint EXCLUSIVE = 0;
layout(constant_id = 3) const uint REVERSE = 0;
layout(constant_id = 4) const uint GROUPED = 0;
NUMBERS { uint lines, size, inner; };
shared A partial[64];

uint element(Numbers p, uint line, uint k) {
  return (line / p.inner * p.size + (REVERSE != 0 ? p.size - 1 - k : k)) * p.inner + line % p.inner;
}
A sum_of(Numbers p, uint line, uint begin, uint end) {
  A sum = A(0);
  for (uint k = begin; k < end; k++) sum += load(operand(0), element(p, line, k));
  return sum;
}
void save(Numbers p, uint line, uint begin, uint end, A sum) {
  for (uint k = begin; k < end; k++) {
    uint at = element(p, line, k);
    A next = sum + load(operand(0), at);
    store(RESULT, at, EXCLUSIVE != 0 ? sum : next);
    sum = next;
  }
}

void main() {
  Numbers p = READ_NUMBERS;
  if (GROUPED == 0) {
    for (uint line = first_element(); line < p.lines; line += grid_size()) save(p, line, 0, p.size, A(0));
    return;
  }
  uint thread = gl_LocalInvocationID.x, share = (p.size + 63) / 64, begin = thread * share, end = min(begin + share, p.size);
  for (uint line = gl_WorkGroupID.x; line < p.lines; line += gl_NumWorkGroups.x) {
    partial[thread] = sum_of(p, line, begin, end);
    barrier();
    A sum = A(0);
    for (uint k = 0; k < thread; k++) sum += partial[k];
    save(p, line, begin, end, sum);
    barrier();
  }
}
