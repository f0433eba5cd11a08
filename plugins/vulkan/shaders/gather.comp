// gather.comp: gather, gather_elements and gather_nd. An index out of range is a fault, and gives no element.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "op.glsl"
layout(local_size_x = 64) in;
layout(constant_id = 1) const uint INDEX_BYTES = 4;
layout(constant_id = 2) const uint MODE = 0;
const uint kAxis = 0, kElements = 1, kRows = 2; // ops/gather.cc
layout(buffer_reference, scalar, buffer_reference_align = BYTES) buffer Elements { T v[]; };
// kAxis: y[outer, i, inner] = x[outer, index[i], inner]: sizes {size of the axis, number of indices, inner}.
// kElements: sizes of the index, bounds and strides of x, the axis k.
// kRows: k indices a row; bounds and strides of x in a batch; sizes {rows of a batch, elements of a slice, of a batch of x}.
NUMBERS { uint count, rank, k, sizes[kRank], bounds[kRank], strides[kRank]; };

// The element of x for element j of y; false: an index is out of range.
bool along_axis(Numbers p, uint j, out uint at) {
  uint within = j % p.sizes[2], row = j / p.sizes[2], outer = row / p.sizes[1];
  int64_t index = read_index(operand(1), row % p.sizes[1], INDEX_BYTES);
  at = (outer * p.sizes[0] + uint(index)) * p.sizes[2] + within;
  return !fails(index, p.sizes[0]);
}
bool by_element(Numbers p, uint j, out uint at) {
  uint rest = j;
  at = 0;
  for (int d = int(p.rank) - 1; d >= 0; d--) {
    int64_t index = int64_t(rest % p.sizes[d]);
    rest /= p.sizes[d];
    if (uint(d) == p.k) index = read_index(operand(1), j, INDEX_BYTES);
    if (fails(index, p.bounds[d])) return false;
    at += uint(index) * p.strides[d];
  }
  return true;
}
bool by_row(Numbers p, uint j, out uint at) {
  uint row = j / p.sizes[1];
  at = row / p.sizes[0] * p.sizes[2] + j % p.sizes[1];
  for (uint d = 0; d < p.k; d++) {
    int64_t index = read_index(operand(1), row * p.k + d, INDEX_BYTES);
    if (fails(index, p.bounds[d])) return false;
    at += uint(index) * p.strides[d];
  }
  return true;
}

void main() {
  Numbers p = READ_NUMBERS;
  for (uint j = first_element(); j < p.count; j += grid_size()) {
    uint at;
    bool found = MODE == kAxis ? along_axis(p, j, at) : MODE == kElements ? by_element(p, j, at) : by_row(p, j, at);
    if (found) Elements(RESULT).v[j] = Elements(operand(0)).v[at];
  }
}
