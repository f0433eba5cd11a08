// reduce.comp: reductions along any axes. GROUPED: a work group for each result: threads reduce every 64th element, then a tree
// of pairs; otherwise a thread for each result. With pieces > 1 step 0 reduces a piece of a result's elements each and keeps
// its state in scratch; step 1 combines the states. The order of operations depends on the dims only.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "op.glsl"
#include "elements.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 2) const uint OP = 0;
layout(constant_id = 3) const uint GROUPED = 0;
const uint kSum = 0, kMean = 1, kProd = 2, kMax = 3, kMin = 4; // ops/reduce.cc
NUMBERS {
  uint64_t identity;
  uint count, reduced, pieces, kept_rank, rank;
  uint kept_sizes[kRank], kept_strides[kRank], sizes[kRank], strides[kRank];
};

#ifdef MEAN // of integers: exact, as the sums of the upper and the lower 32 bits
struct State { int64_t high; uint64_t low; };
State identity(Numbers p) { return State(0, 0); }
State from(A x) { return State(int64_t(x >> 31 >> 1), uint64_t(x) & 0xffffffffUL); }
State combined(State a, State b) { return State(a.high + b.high, a.low + b.low); }
A finished(State s, uint reduced) {
  if (reduced == 0) return A(0);
  int64_t count = int64_t(reduced), upper = s.high / count, rest = s.high - upper * count; // % of negative numbers is undefined
  if (rest < 0) {
    upper--;
    rest += count;
  }
  uint64_t lower = s.low + (uint64_t(rest) << 32);
  int64_t mean = (upper << 32) + int64_t(lower / uint64_t(count));
#ifdef SIGNED
  if (mean < 0 && lower % uint64_t(count) != 0) mean++; // truncates
#endif
  return A(mean);
}
#else
#define State A
State identity(Numbers p) { return from_bits(p.identity); }
State from(A x) { return x; }
State combined(State a, State b) {
  switch (OP) {
    case kProd: return a * b;
    case kMax: return greater(a, b);
    case kMin: return lesser(a, b);
  }
  return a + b;
}
A finished(State s, uint reduced) { return OP == kMean ? s / A(reduced) : s; }
#endif
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer States { State v[]; };
shared State partial[64];

uint first_of(Numbers p, uint result) {
  uint at = 0, rest = result;
  for (int d = int(p.kept_rank) - 1; d >= 0; d--) {
    at += rest % p.kept_sizes[d] * p.kept_strides[d];
    rest /= p.kept_sizes[d];
  }
  return at;
}
uint place_of(Numbers p, uint k) {
  uint at = 0;
  for (int d = int(p.rank) - 1; d > 0; d--) {
    at += k % p.sizes[d] * p.strides[d];
    k /= p.sizes[d];
  }
  return at + k * p.strides[0];
}
// Elements begin, begin + step ... before end of a result. Parts of 16 are combined first: long sums round less.
State reduced(Numbers p, uint base, uint begin, uint end, uint step) {
  uint64_t x = operand(0);
  State all = identity(p);
  for (uint k = begin; k < end;) {
    State part = identity(p);
    for (uint stop = min(k + 16 * step, end); k < stop; k += step) part = combined(part, from(load(x, base + place_of(p, k))));
    all = combined(all, part);
  }
  return all;
}
void save(Numbers p, uint task, State all) {
  if (p.pieces > 1) States(SCRATCH).v[task] = all;
  else store(RESULT, task, finished(all, p.reduced));
}
void by_group(Numbers p) {
  uint thread = gl_LocalInvocationID.x;
  for (uint task = gl_WorkGroupID.x; task < p.count * p.pieces; task += gl_NumWorkGroups.x) {
    uint share = (p.reduced + p.pieces - 1) / p.pieces, begin = task % p.pieces * share;
    partial[thread] = reduced(p, first_of(p, task / p.pieces), begin + thread, min(begin + share, p.reduced), 64);
    for (uint half_size = 32; half_size > 0; half_size /= 2) {
      barrier();
      if (thread < half_size) partial[thread] = combined(partial[thread], partial[thread + half_size]);
    }
    if (thread == 0) save(p, task, partial[0]);
    barrier();
  }
}

void main() {
  Numbers p = READ_NUMBERS;
  if (GROUPED != 0) {
    by_group(p);
    return;
  }
  for (uint i = first_element(); i < p.count; i += grid_size()) {
    if (push.step == 0) {
      save(p, i, reduced(p, first_of(p, i), 0, p.reduced, 1));
      continue;
    }
    State all = identity(p);
    for (uint k = 0; k < p.pieces; k++) all = combined(all, States(SCRATCH).v[i * p.pieces + k]);
    store(RESULT, i, finished(all, p.reduced));
  }
}
