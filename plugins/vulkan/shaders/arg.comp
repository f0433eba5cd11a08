// arg.comp: arg_max and arg_min along a line x[outer, :, inner]. GROUPED: a work group for each line, otherwise a thread.
// With pieces > 1 step 0 keeps the best of each piece of a line in scratch, and step 1 the best of these.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "op.glsl"
#include "elements.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 2) const uint MAX = 1;
layout(constant_id = 3) const uint LAST = 0;
layout(constant_id = 4) const uint GROUPED = 0;
NUMBERS { uint lines, size, inner, pieces; };
struct Best { A value; uint at; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Bests { Best v[]; };
shared Best partial[64];

Best better(Best a, Best b) { // a total order; NaN is preferred to all others
  if (a.at == 0xffffffffu || b.at == 0xffffffffu) return a.at == 0xffffffffu ? b : a;
  if (is_nan(a.value) != is_nan(b.value)) return is_nan(a.value) ? a : b;
  if (a.value < b.value || a.value > b.value) return (MAX != 0) == (a.value > b.value) ? a : b;
  return (LAST != 0) == (a.at > b.at) ? a : b;
}
Best best_of(Numbers p, uint line, uint begin, uint end, uint step) {
  uint base = line / p.inner * p.size * p.inner + line % p.inner;
  Best best = Best(A(0), 0xffffffffu);
  for (uint k = begin; k < end; k += step) best = better(best, Best(load(operand(0), base + k * p.inner), k));
  return best;
}

void main() {
  Numbers p = READ_NUMBERS;
  uint thread = gl_LocalInvocationID.x;
  if (GROUPED == 0) {
    for (uint line = first_element(); line < p.lines; line += grid_size()) {
      Best best = Best(A(0), 0xffffffffu);
      if (push.step == 0) best = best_of(p, line, 0, p.size, 1);
      else
        for (uint k = 0; k < p.pieces; k++) best = better(best, Bests(SCRATCH).v[line * p.pieces + k]);
      Longs(RESULT).v[line] = int64_t(best.at);
    }
    return;
  }
  uint share = (p.size + p.pieces - 1) / p.pieces;
  for (uint task = gl_WorkGroupID.x; task < p.lines * p.pieces; task += gl_NumWorkGroups.x) {
    uint begin = task % p.pieces * share;
    partial[thread] = best_of(p, task / p.pieces, begin + thread, min(begin + share, p.size), 64);
    for (uint half_size = 32; half_size > 0; half_size /= 2) {
      barrier();
      if (thread < half_size) partial[thread] = better(partial[thread], partial[thread + half_size]);
    }
    if (thread == 0 && p.pieces > 1) Bests(SCRATCH).v[task] = partial[0];
    if (thread == 0 && p.pieces == 1) Longs(RESULT).v[task] = int64_t(partial[0].at);
    barrier();
  }
}
