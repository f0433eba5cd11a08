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

A left(Numbers p, uint row, uint k) { return load(a_matrix, from_a + row * a_row + k * a_inner); }
A right(Numbers p, uint k, uint column) { return load(b_matrix, from_b + k * b_inner + column * b_column); }
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
#include "tiles.glsl"

A dot_product(Numbers p, uint row, uint column, uint begin, uint step, A sum) {
  for (uint k = first_k(p) + begin; k < end_k(p); k += step) sum = MULTIPLY_ADD(left(p, row, k), right(p, k, column), sum);
  return sum;
}
void by_thread(Numbers p) {
  uint thread = gl_LocalInvocationID.y * 16 + gl_LocalInvocationID.x, in_batch = p.rows * p.columns;
  for (uint i = gl_WorkGroupID.x * 256 + thread; i < p.batches * in_batch; i += gl_NumWorkGroups.x * 256) {
    enter(p, i / in_batch);
    uint row = i % in_batch / p.columns, column = i % p.columns;
    save(p, row, column, dot_product(p, row, column, 0, 1, started(p, row, column)));
  }
}
void by_group(Numbers p) {
  uint thread = gl_LocalInvocationID.y * 16 + gl_LocalInvocationID.x, in_batch = p.rows * p.columns;
  for (uint i = gl_WorkGroupID.x; i < p.batches * in_batch; i += gl_NumWorkGroups.x) {
    enter(p, i / in_batch);
    uint row = i % in_batch / p.columns, column = i % p.columns;
    partial[thread] = dot_product(p, row, column, thread, 256, thread == 0 ? started(p, row, column) : A(0));
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
