// gather.comp: y[outer, i, inner] = x[outer, index[i], inner]. The first thread with an index out of range stores it in the
// fault bytes and goes on with index 0.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint INDEX_BYTES = 4;
layout(buffer_reference, scalar, buffer_reference_align = BYTES) buffer Elements { T v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer Ints { int v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Longs { int64_t v[]; };
PARAMS { uint64_t x, index, y, scratch, fault, code; uint outer, axis, count, inner; };

void main() {
  Params p = Params(push.params);
  for (uint j = first_element(); j < p.outer * p.count * p.inner; j += grid_size()) {
    uint within = j % p.inner, row = j / p.inner % p.count, outer = j / (p.inner * p.count);
    int64_t at = INDEX_BYTES == 8 ? Longs(p.index).v[row] : int64_t(Ints(p.index).v[row]);
    if (at < 0 || at >= int64_t(p.axis)) {
      Fault fault = Fault(p.fault);
      if (atomicCompSwap(fault.code, 0u, uint(p.code)) == 0u) {
        fault.bound = p.axis;
        fault.index = at;
      }
      if (p.axis == 0) continue;
      at = 0;
    }
    Elements(p.y).v[j] = Elements(p.x).v[(outer * p.axis + uint(at)) * p.inner + within];
  }
}
