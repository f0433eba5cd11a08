// add.comp: c = a + b, broadcast: strides in elements, 0 along broadcast dims.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Elements { float v[]; };
PARAMS { uint64_t a, b, c, scratch, fault, code; uint count, rank; uint sizes[kRank], of_a[kRank], of_b[kRank]; };

void main() {
  Params p = Params(push.params);
  for (uint i = first_element(); i < p.count; i += grid_size()) {
    uint rest = i, at_a = 0, at_b = 0;
    for (int d = int(p.rank) - 1; d >= 0; d--) {
      uint x = rest % p.sizes[d];
      rest /= p.sizes[d];
      at_a += x * p.of_a[d];
      at_b += x * p.of_b[d];
    }
    Elements(p.c).v[i] = Elements(p.a).v[at_a] + Elements(p.b).v[at_b];
  }
}
