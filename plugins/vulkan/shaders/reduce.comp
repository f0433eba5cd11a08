// reduce.comp: a work group for each result: threads reduce every 64th element, then a tree of pairs. OP is the order of
// kReductions in ops/reduce.cc. The reduced and the kept dims are any; sizes and strides are in elements.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint OP = 0;
const uint kSum = 0, kMean = 1, kProd = 2, kMax = 3, kMin = 4;
layout(buffer_reference, scalar, buffer_reference_align = BYTES) buffer Elements { T v[]; };
PARAMS {
  uint64_t x, y, scratch, fault, code;
  uint count, reduced, kept_rank, reduced_rank;
  uint kept_sizes[kRank], kept_strides[kRank], sizes[kRank], strides[kRank];
};
shared T partial[64];

T identity() {
  switch (OP) {
    case kProd: return T(1);
    case kMax: return LOWEST;
    case kMin: return HIGHEST;
  }
  return T(0);
}
T combined(T a, T b) {
  switch (OP) {
    case kProd: return a * b;
    case kMax: return a != a || a > b ? a : b;
    case kMin: return a != a || a < b ? a : b;
  }
  return a + b;
}

void main() {
  Params p = Params(push.params);
  uint thread = gl_LocalInvocationID.x;
  for (uint i = gl_WorkGroupID.x; i < p.count; i += gl_NumWorkGroups.x) {
    uint base = 0, rest = i;
    for (int d = int(p.kept_rank) - 1; d >= 0; d--) {
      base += rest % p.kept_sizes[d] * p.kept_strides[d];
      rest /= p.kept_sizes[d];
    }
    T all = identity();
    for (uint k = thread; k < p.reduced; k += 64) {
      uint at = base, left = k;
      for (int d = int(p.reduced_rank) - 1; d >= 0; d--) {
        at += left % p.sizes[d] * p.strides[d];
        left /= p.sizes[d];
      }
      all = combined(Elements(p.x).v[at], all);
    }
    partial[thread] = all;
    for (uint half_size = 32; half_size > 0; half_size /= 2) {
      barrier();
      if (thread < half_size) partial[thread] = combined(partial[thread + half_size], partial[thread]);
    }
    barrier();
    if (thread == 0) Elements(p.y).v[i] = OP == kMean ? partial[0] / T(p.reduced) : partial[0];
    barrier();
  }
}
