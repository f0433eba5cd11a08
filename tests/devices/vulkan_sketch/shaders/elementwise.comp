// elementwise.comp: y = OP(a, b) with broadcast operands: strides in elements, 0 where an operand stands still.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(push_constant, scalar) uniform Push { uint64_t a, b, y; uint n; uint dims[4]; uint a_strides[4]; uint b_strides[4]; } p;

float nan_or(float a, float b, float value) { return isnan(a) || isnan(b) ? a + b : value; }

float computed(float a, float b) {
  switch (OP) { // enum Elementwise of launch.cc
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * b;
    case 3: return a / b;
    case 4: return nan_or(a, b, max(a, b));
    case 5: return nan_or(a, b, min(a, b));
    case 6: return -a;
    case 7: return abs(a);
    case 8: return exp(a);
    case 9: return sqrt(a);
    case 10: return isnan(a) ? a : max(a, 0.0);
  }
  return a;
}

void main() {
  for (uint i = first_element(); i < p.n; i += grid_size()) {
    uint rest = i, at_a = 0, at_b = 0;
    for (int d = 3; d >= 0; d--) {
      uint x = rest % p.dims[d];
      rest /= p.dims[d];
      at_a += x * p.a_strides[d];
      at_b += x * p.b_strides[d];
    }
    Floats(p.y).v[i] = computed(Floats(p.a).v[at_a], Floats(p.b).v[at_b]);
  }
}
