// copy.comp: y[i] = x[start + sum of index * stride]: transposes, broadcasts, slices with steps.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(buffer_reference, scalar, buffer_reference_align = BYTES) buffer Elements { T v[]; };
PARAMS { uint64_t x, y, scratch, fault, code; uint count, rank; int start; uint sizes[kRank]; int strides[kRank]; };

void main() {
  Params p = Params(push.params);
  for (uint i = first_element(); i < p.count; i += grid_size()) {
    uint rest = i;
    int at = p.start;
    for (int d = int(p.rank) - 1; d >= 0; d--) {
      at += int(rest % p.sizes[d]) * p.strides[d];
      rest /= p.sizes[d];
    }
    Elements(p.y).v[i] = Elements(p.x).v[at];
  }
}
