// conv.comp: a convolution or one of its gradients as products of matrices, one for each image and group (kWeights: for each
// group), whose right side is read by windows. `left` has all taps of the inner dim.
//   kForward   y[o, place] = w[o, (i, tap)] x[(i, tap), place]
//   kImage     dx[i, cell] = w[i, (o, tap)] dy[(o, tap), cell]
//   kWeights   dw[o, (i, tap)] = dy[o, (n, place)] x[(n, place), (i, tap)]
// Padding adds exactly 0 even for infinite weights: products that are NaN are computed once more, cell by cell.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "op.glsl"
#include "elements.glsl"
layout(constant_id = 4) const uint OP = 0;
layout(constant_id = 5) const uint DIRECT = 0; // a thread for each result
layout(constant_id = 6) const uint POINTS = 0; // a window of one cell, no padding, strides 1
const uint kForward = 0, kImage = 1, kWeights = 2; // ops/conv.cc
// For a group: `ins` channels of x, `outs` of y.
#define SIZES uint batches, rows, columns, inner, depth, images, groups, ins, outs, pixels, windows, taps
#include "window.glsl"
uint image, group; // at hand

// The part of the inner dim of this step.
uint first_k(Numbers p) { return uint(push.step) * p.depth; }
uint end_k(Numbers p) { return min(first_k(p) + p.depth, p.inner); }

uint weight(Numbers p, uint o, uint i, uint tap) { return ((group * p.outs + o) * p.ins + i) * p.taps + tap; }
uint in_x(Numbers p, uint n, uint i, uint cell) { return ((n * p.groups + group) * p.ins + i) * p.pixels + cell; }
uint in_y(Numbers p, uint n, uint o, uint place) { return ((n * p.groups + group) * p.outs + o) * p.windows + place; }
int cell_of(Numbers p, uint place, uint tap) { return POINTS != 0 ? int(place) : image_cell(p, place, tap); }

A left(Numbers p, uint row, uint k) {
  if (OP == kForward) return load(operand(1), weight(p, row, k / p.taps, k % p.taps));
  if (OP == kImage) return load(operand(1), weight(p, k / p.taps, row, k % p.taps));
  return load(operand(0), in_y(p, k / p.windows, row, k % p.windows));
}
// The element of the right side; -1: padding.
int right_at(Numbers p, uint k, uint column) {
  if (OP == kForward) {
    int cell = cell_of(p, column, k % p.taps);
    return cell < 0 ? -1 : int(in_x(p, image, k / p.taps, uint(cell)));
  }
  if (OP == kImage) {
    int place = POINTS != 0 ? int(column) : place_of(p, column, k % p.taps);
    return place < 0 ? -1 : int(in_y(p, image, k / p.taps, uint(place)));
  }
  int cell = cell_of(p, k % p.windows, column % p.taps);
  return cell < 0 ? -1 : int(in_x(p, k / p.windows, column / p.taps, uint(cell)));
}
uint64_t right_side() { return operand(OP == kWeights ? 1 : 0); }
A right(Numbers p, uint k, uint column) {
  int at = right_at(p, k, column);
  return at < 0 ? A(0) : load(right_side(), uint(at));
}
A sum_of(Numbers p, uint row, uint column, A sum) {
  for (uint k = first_k(p); k < end_k(p); k++) {
    int at = right_at(p, k, column);
    if (at >= 0) sum = MULTIPLY_ADD(left(p, row, k), load(right_side(), uint(at)), sum);
  }
  return sum;
}
uint result(Numbers p, uint row, uint column) {
  return OP == kForward ? in_y(p, image, row, column) : OP == kImage ? in_x(p, image, row, column)
                                                                     : weight(p, row, 0, 0) + column;
}
A started(Numbers p, uint row, uint column) { return push.step == 0 ? A(0) : Wide(SCRATCH).v[result(p, row, column)]; }
void save(Numbers p, uint row, uint column, A sum) {
  if (DIRECT == 0 && is_nan(sum)) sum = sum_of(p, row, column, started(p, row, column));
  if (end_k(p) < p.inner) Wide(SCRATCH).v[result(p, row, column)] = sum;
  else store(RESULT, result(p, row, column), sum);
}
V4 left4(Numbers p, uint row, uint k) { return V4(left(p, row, k), left(p, row, k + 1), left(p, row, k + 2), left(p, row, k + 3)); }
V4 right4(Numbers p, uint k, uint column) {
  return V4(right(p, k, column), right(p, k, column + 1), right(p, k, column + 2), right(p, k, column + 3));
}
#include "tiles.glsl"

void enter(Numbers p, uint batch) {
  image = batch / p.groups;
  group = batch % p.groups;
}

void main() {
  Numbers p = READ_NUMBERS;
  if (DIRECT != 0) {
    uint thread = gl_LocalInvocationID.y * 16 + gl_LocalInvocationID.x, in_batch = p.rows * p.columns;
    for (uint i = gl_WorkGroupID.x * 256 + thread; i < p.batches * in_batch; i += gl_NumWorkGroups.x * 256) {
      enter(p, i / in_batch);
      uint row = i % in_batch / p.columns, column = i % p.columns;
      save(p, row, column, sum_of(p, row, column, started(p, row, column)));
    }
    return;
  }
  for (uint batch = gl_WorkGroupID.z; batch < p.batches; batch += gl_NumWorkGroups.z) {
    enter(p, batch);
    multiply(p, p.rows, p.columns);
  }
}
