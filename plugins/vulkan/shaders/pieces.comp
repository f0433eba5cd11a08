// pieces.comp: concat and split: a row of the whole is the rows of the pieces one after another.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "op.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 1) const uint SPLIT = 0;
layout(buffer_reference, scalar, buffer_reference_align = BYTES) buffer Elements { T v[]; };
NUMBERS { uint count, width, pieces, starts[]; }; // starts: pieces + 1 of them

void main() {
  Numbers p = READ_NUMBERS;
  for (uint i = first_element(); i < p.count; i += grid_size()) {
    uint row = i / p.width, column = i % p.width, piece = 0;
    for (uint end = p.pieces; end - piece > 1;) { // starts[piece] <= column < starts[end]
      uint middle = (piece + end) / 2;
      if (p.starts[middle] <= column) piece = middle;
      else end = middle;
    }
    uint first = p.starts[piece], at = row * (p.starts[piece + 1] - first) + column - first;
    if (SPLIT != 0) Elements(operand(1 + piece)).v[at] = Elements(operand(0)).v[i];
    else Elements(RESULT).v[i] = Elements(operand(piece)).v[at];
  }
}
