// gather.comp: y[outer, i, inner] = x[outer, index[i], inner]; the first thread with a bad index says so in the fault word.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(push_constant, scalar) uniform Push { uint64_t x, index, y, fault; uint word, outer, axis, count, inner; } p;

void main() {
  for (uint j = first_element(); j < p.outer * p.count * p.inner; j += grid_size()) {
    uint within = j % p.inner, row = j / p.inner % p.count, outer = j / (p.inner * p.count);
    int at = Ints(p.index).v[row];
    if (at < 0 || uint(at) >= p.axis) {
      Fault fault = Fault(p.fault);
      if (atomicCompSwap(fault.word, 0u, p.word) == 0u) {
        fault.bound = p.axis;
        fault.index = int64_t(at);
      }
      at = 0;
    }
    Ints(p.y).v[j] = Ints(p.x).v[(outer * p.axis + uint(at)) * p.inner + within];
  }
}
