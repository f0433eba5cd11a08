// matmul.comp: c[batch] = a[batch] b[batch], and + bias[column] with BIAS. kTiles: tiles.glsl. kColumns: a thread for each
// result. kDots: a work group for each result.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "op.glsl"
#include "elements.glsl"
#define MORE_NUMBERS
#include "batches.glsl"
layout(constant_id = 4) const uint MODE = 0;
layout(constant_id = 5) const uint BIAS = 0;
const uint kTiles = 0, kColumns = 1, kDots = 2; // ops/matmul.cc
shared A partial[256];

E left(Numbers p, uint row, uint k) { return load_tile(a_matrix, from_a + row * a_row + k * a_inner); }
E right(Numbers p, uint k, uint column) { return load_tile(b_matrix, from_b + k * b_inner + column * b_column); }
V4 left4(Numbers p, uint row, uint k) {
  if (a_inner == 1) return load4(a_matrix, from_a + row * a_row + k);
  return V4(left(p, row, k), left(p, row, k + 1), left(p, row, k + 2), left(p, row, k + 3));
}
V4 right4(Numbers p, uint k, uint column) {
  if (b_column == 1) return load4(b_matrix, from_b + k * b_inner + column);
  return V4(right(p, k, column), right(p, k, column + 1), right(p, k, column + 2), right(p, k, column + 3));
}
uint result(Numbers p, uint row, uint column) { return (batch * p.rows + row) * p.columns + column; }
A started(Numbers p, uint row, uint column) { return push.step == 0 ? A(0) : Wide(SCRATCH).v[result(p, row, column)]; }
void save(Numbers p, uint row, uint column, A sum) {
  if (end_k(p) < p.inner) {
    Wide(SCRATCH).v[result(p, row, column)] = sum;
    return;
  }
  if (BIAS != 0) sum += load(operand(2), column);
  store(RESULT, result(p, row, column), sum);
}
#ifdef COOPERATIVE
#include "cooperative.glsl"
#else
#include "tiles.glsl"
#endif

// k from begin on, each step-th, before end: found outside of loops, because lavapipe of Mesa 26 crashes where a subgroup without
// active threads calculates it.
A dot_product(Numbers p, uint row, uint column, uint begin, uint end, uint step, A sum) {
  for (uint k = begin; k < end; k += step) sum = MULTIPLY_ADD(A(left(p, row, k)), A(right(p, k, column)), sum);
  return sum;
}
void by_thread(Numbers p) {
  uint thread = gl_LocalInvocationID.y * 16 + gl_LocalInvocationID.x, columns = p.columns, in_batch = p.rows * columns;
  uint first = first_k(p), end = end_k(p);
  for (uint i = gl_WorkGroupID.x * 256 + thread, all = p.batches * in_batch; i < all; i += gl_NumWorkGroups.x * 256) {
    enter(p, i / in_batch);
    uint row = i % in_batch / columns, column = i % columns;
    save(p, row, column, dot_product(p, row, column, first, end, 1, started(p, row, column)));
  }
}
void by_group(Numbers p) {
  uint thread = gl_LocalInvocationID.y * 16 + gl_LocalInvocationID.x, in_batch = p.rows * p.columns;
  uint first = first_k(p), end = end_k(p);
  for (uint i = gl_WorkGroupID.x; i < p.batches * in_batch; i += gl_NumWorkGroups.x) {
    enter(p, i / in_batch);
    uint row = i % in_batch / p.columns, column = i % p.columns;
    partial[thread] = dot_product(p, row, column, first + thread, end, 256, thread == 0 ? started(p, row, column) : A(0));
    for (uint half_size = 128; half_size > 0; half_size /= 2) {
      barrier();
      if (thread < half_size) partial[thread] += partial[thread + half_size];
    }
    if (thread == 0) save(p, row, column, partial[0]);
    barrier();
  }
}

void main() {
  Numbers p = READ_NUMBERS;
  read_product(p, 0);
  if (MODE == kDots) by_group(p);
  if (MODE == kColumns) by_thread(p);
  if (MODE == kTiles)
    for (uint i = gl_WorkGroupID.z; i < p.batches; i += gl_NumWorkGroups.z) {
      enter(p, i);
      multiply(p, p.rows, p.columns);
    }
}
