// conv.comp: a convolution or one of its gradients as products of matrices, one for each image and group (kWeights: for each
// group), whose right side is read by windows. `left` has all taps of the inner dim.
//   kForward   y[o, place] = w[o, (i, tap)] x[(i, tap), place]
//   kImage     dx[i, cell] = w[i, (o, tap)] dy[(o, tap), cell]
//   kWeights   dw[o, (i, tap)] = dy[o, (n, place)] x[(n, place), (i, tap)]
// Padding adds exactly 0 even for infinite weights: after the products, those that are NaN are computed once more, cell by cell.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "op.glsl"
#include "elements.glsl"
layout(constant_id = 4) const uint OP = 0;
layout(constant_id = 5) const uint MODE = 0;
layout(constant_id = 6) const uint POINTS = 0; // a window of one cell, no padding, strides 1
const uint kForward = 0, kImage = 1, kWeights = 2; // ops/conv.cc
const uint kTiles = 0, kThreads = 1, kMend = 2; // kThreads: a thread for each result; kMend: also, of results that are NaN
// For a group: `ins` channels of x, `outs` of y.
#define SIZES uint batches, rows, columns, inner, depth, images, groups, ins, outs, pixels, windows, taps
#define WINDOW_ID 7
#include "window.glsl"
uint image, group; // at hand
uint groups, ins, outs, pixels, windows, taps, first, end; // copies; first, end: the part of the inner dim of this step
bool is_last; // step

uint first_k(Numbers p) { return first; }
uint end_k(Numbers p) { return end; }

uint weight(uint o, uint i, uint tap) { return ((group * outs + o) * ins + i) * taps + tap; }
uint in_x(uint n, uint i, uint cell) { return ((n * groups + group) * ins + i) * pixels + cell; }
uint in_y(uint n, uint o, uint place) { return ((n * groups + group) * outs + o) * windows + place; }
int cell_of(uint place, uint tap) { return POINTS != 0 ? int(place) : image_cell(place, tap); }

E left(Numbers p, uint row, uint k) {
  if (OP == kForward) return load_tile(operand(1), weight(row, 0, k));
  uint outer = over(k, OP == kImage ? taps : windows);
  if (OP == kImage) return load_tile(operand(1), weight(outer, row, k - outer * taps));
  return load_tile(operand(0), in_y(outer, row, k - outer * windows));
}
// The element of the right side; -1: padding.
int right_at(uint k, uint column) {
  if (OP == kWeights) {
    uint n = over(k, windows), i = over(column, taps);
    int cell = cell_of(k - n * windows, column - i * taps);
    return cell < 0 ? -1 : int(in_x(n, i, uint(cell)));
  }
  uint channel = over(k, taps), tap = k - channel * taps;
  int at = POINTS != 0 ? int(column) : OP == kForward ? image_cell(column, tap) : place_of(column, tap);
  return at < 0 ? -1 : int(OP == kForward ? in_x(image, channel, uint(at)) : in_y(image, channel, uint(at)));
}
uint64_t right_side() { return operand(OP == kWeights ? 1 : 0); }
E right(Numbers p, uint k, uint column) {
  int at = right_at(k, column);
  return at < 0 ? E(0) : load_tile(right_side(), uint(at));
}
A sum_of(Numbers p, uint row, uint column, A sum) {
  for (uint k = first; k < end; k++) {
    int at = right_at(k, column);
    if (at >= 0) sum = MULTIPLY_ADD(A(left(p, row, k)), load(right_side(), uint(at)), sum);
  }
  return sum;
}
uint result(uint row, uint column) {
  return OP == kForward ? in_y(image, row, column) : OP == kImage ? in_x(image, row, column) : weight(row, 0, 0) + column;
}
A started(Numbers p, uint row, uint column) { return push.step == 0 ? A(0) : Wide(SCRATCH).v[result(row, column)]; }
void save(Numbers p, uint row, uint column, A sum) {
  if (is_last) store(RESULT, result(row, column), sum);
  else Wide(SCRATCH).v[result(row, column)] = sum;
}
V4 left4(Numbers p, uint row, uint k) {
  if (OP == kForward) return load4(operand(1), weight(row, 0, k));
  return V4(left(p, row, k), left(p, row, k + 1), left(p, row, k + 2), left(p, row, k + 3));
}
V4 right4(Numbers p, uint k, uint column) {
  if (POINTS != 0 && OP != kWeights) return load4(right_side(), uint(right_at(k, column)));
  return V4(right(p, k, column), right(p, k, column + 1), right(p, k, column + 2), right(p, k, column + 3));
}
#ifdef COOPERATIVE
#include "cooperative.glsl"
#else
#include "tiles.glsl"
#endif

void enter(uint batch) {
  image = batch / groups;
  group = batch % groups;
}

void main() {
  Numbers p = READ_NUMBERS;
  read_window(p);
  groups = p.groups;
  ins = p.ins;
  outs = p.outs;
  pixels = p.pixels;
  windows = p.windows;
  taps = p.taps;
  first = uint(push.step) * p.depth;
  end = min(first + p.depth, p.inner);
  is_last = end == p.inner;
  if (MODE != kTiles) {
    uint thread = gl_LocalInvocationID.y * 16 + gl_LocalInvocationID.x, columns = p.columns, in_batch = p.rows * columns;
    for (uint i = gl_WorkGroupID.x * 256 + thread, all = p.batches * in_batch; i < all; i += gl_NumWorkGroups.x * 256) {
      if (MODE == kMend && !is_nan(load(RESULT, i))) continue;
      enter(i / in_batch);
      uint row = i % in_batch / columns, column = i % columns;
      save(p, row, column, sum_of(p, row, column, started(p, row, column)));
    }
    return;
  }
  for (uint batch = gl_WorkGroupID.z, all = p.batches; batch < all; batch += gl_NumWorkGroups.z) {
    enter(batch);
    multiply(p, p.rows, p.columns);
  }
}
