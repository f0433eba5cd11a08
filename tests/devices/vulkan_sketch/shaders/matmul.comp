// matmul.comp: one element of the product a thread; strides say what is transposed.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(push_constant, scalar) uniform Push { uint64_t a, b, y; uint rows, columns, inner; uint a_row, a_inner, b_inner, b_column; } p;

void main() {
  for (uint i = first_element(); i < p.rows * p.columns; i += grid_size()) {
    uint at_a = i / p.columns * p.a_row, at_b = i % p.columns * p.b_column;
    float sum = 0;
    for (uint k = 0; k < p.inner; k++) sum = fma(Floats(p.a).v[at_a + k * p.a_inner], Floats(p.b).v[at_b + k * p.b_inner], sum);
    Floats(p.y).v[i] = sum;
  }
}
