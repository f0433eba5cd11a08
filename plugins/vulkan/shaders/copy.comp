// copy.comp: ops that move elements: y[i] = x[start + sum of index * stride].
#version 460
#extension GL_GOOGLE_include_directive : require
#include "op.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 1) const uint MODE = 0;
const uint kView = 0, kTile = 1, kPad = 2, kTriangle = 3; // ops/copy.cc
layout(buffer_reference, scalar, buffer_reference_align = BYTES) buffer Elements { T v[]; };
// kTile: the index in x is that modulo a. kPad: it is (index - a) / b, and v outside. kTriangle: start is the diagonal, a[0] is 1
// for the upper triangle; the last two sizes are those of the matrices.
NUMBERS { uint count, rank; int start; uint sizes[kRank]; int strides[kRank], a[kRank], b[kRank], limits[kRank]; };

bool in_triangle(Numbers p, uint i) {
  uint columns = p.sizes[p.rank - 1], rows = p.sizes[p.rank - 2];
  int diagonal = int(i % columns) - int(i / columns % rows);
  return p.a[0] != 0 ? diagonal >= p.start : diagonal <= p.start;
}

void main() {
  Numbers p = READ_NUMBERS;
  Elements x = Elements(operand(0)), y = Elements(RESULT);
  for (uint i = first_element(); i < p.count; i += grid_size()) {
    if (MODE == kTriangle) {
      y.v[i] = in_triangle(p, i) ? x.v[i] : T(0);
      continue;
    }
    uint rest = i;
    int at = p.start;
    bool inside = true;
    for (int d = int(p.rank) - 1; d >= 0; d--) {
      int index = int(rest);
      if (d > 0) {
        index = int(rest % p.sizes[d]);
        rest /= p.sizes[d];
      }
      if (MODE == kTile) index %= p.a[d];
      if (MODE == kPad) {
        index -= p.a[d];
        inside = inside && index >= 0 && index % p.b[d] == 0;
        index /= p.b[d];
        inside = inside && index < p.limits[d];
      }
      at += index * p.strides[d];
    }
    if (inside) y.v[i] = x.v[at];
    else y.v[i] = Elements(operand(1)).v[0];
  }
}
