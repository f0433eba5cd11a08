// reduce.comp: y[outer, inner] = OP over the middle dim of x[outer, axis, inner].
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(push_constant, scalar) uniform Push { uint64_t x, y; uint outer, axis, inner; } p;

void main() {
  for (uint i = first_element(); i < p.outer * p.inner; i += grid_size()) {
    uint at = i / p.inner * p.axis * p.inner + i % p.inner;
    float all = OP == 0 ? 0.0 : uintBitsToFloat(0xff800000u); // of a maximum: minus infinity
    for (uint k = 0; k < p.axis; k++, at += p.inner) {
      float x = Floats(p.x).v[at];
      all = OP == 0 ? all + x : isnan(x) || x > all ? x : all;
    }
    Floats(p.y).v[i] = all;
  }
}
