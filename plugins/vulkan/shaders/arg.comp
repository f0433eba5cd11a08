// arg.comp: arg_max and arg_min along a line x[outer, :, inner]. GROUPED: a work group for each line, otherwise a thread.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "op.glsl"
#include "elements.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 2) const uint MAX = 1;
layout(constant_id = 3) const uint LAST = 0;
layout(constant_id = 4) const uint GROUPED = 0;
NUMBERS { uint lines, size, inner; };
struct Best { A value; uint at; };
shared Best partial[64];

Best better(Best a, Best b) { // a total order; NaN is preferred to all others
  if (a.at == 0xffffffffu || b.at == 0xffffffffu) return a.at == 0xffffffffu ? b : a;
  if (is_nan(a.value) != is_nan(b.value)) return is_nan(a.value) ? a : b;
  if (a.value < b.value || a.value > b.value) return (MAX != 0) == (a.value > b.value) ? a : b;
  return (LAST != 0) == (a.at > b.at) ? a : b;
}
Best best_of(Numbers p, uint line, uint begin, uint step) {
  uint base = line / p.inner * p.size * p.inner + line % p.inner;
  Best best = Best(A(0), 0xffffffffu);
  for (uint k = begin; k < p.size; k += step) best = better(best, Best(load(operand(0), base + k * p.inner), k));
  return best;
}

void main() {
  Numbers p = READ_NUMBERS;
  uint thread = gl_LocalInvocationID.x;
  if (GROUPED == 0) {
    for (uint line = first_element(); line < p.lines; line += grid_size())
      Longs(RESULT).v[line] = int64_t(best_of(p, line, 0, 1).at);
    return;
  }
  for (uint line = gl_WorkGroupID.x; line < p.lines; line += gl_NumWorkGroups.x) {
    partial[thread] = best_of(p, line, thread, 64);
    for (uint half_size = 32; half_size > 0; half_size /= 2) {
      barrier();
      if (thread < half_size) partial[thread] = better(partial[thread], partial[thread + half_size]);
    }
    if (thread == 0) Longs(RESULT).v[line] = int64_t(partial[0].at);
    barrier();
  }
}
