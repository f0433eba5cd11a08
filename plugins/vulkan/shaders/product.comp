// product.comp: c[batch] = a[batch] b[batch], and + bias[column] with BIAS, by threads that keep ROWS x COLUMNS results in registers
// and read the operands from memory: for devices that are processors. There a load costs as much as a dozen multiplications,
// because each thread of a vector loads on its own; so does shared memory, and a barrier stores all registers.
// With TABLE, b is an image in scratch (phases.comp): element (k, column) is at table[k] + column, and the results are windows.
#version 460
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require
#include "op.glsl"
#include "elements.glsl"
// Results of a row. TABLE: places of the results, strides of the image, and offsets of both in scratch.
#define MORE_NUMBERS uint results, window_rank, places[kRank], pitch[kRank]; uint64_t image, table;
#include "batches.glsl"
layout(local_size_x = 8) in;
layout(constant_id = 2) const uint ROWS = 8;
layout(constant_id = 3) const uint COLUMNS = 8; // even
layout(constant_id = 4) const uint ACROSS = 1;  // threads of a group that are side by side; the others are below
layout(constant_id = 5) const uint PAIRS_A = 0; // whether pairs are adjacent and aligned: along the inner dim
layout(constant_id = 6) const uint PAIRS_B = 0; // of columns
layout(constant_id = 7) const uint PAIRS_C = 0; // of columns of the results; with one step
layout(constant_id = 8) const uint BIAS = 0;
layout(constant_id = 9) const uint TABLE = 0;
layout(constant_id = 10) const uint LEFT = 0;  // the operand that is a; the other one is b
layout(constant_id = 11) const uint STEPS = 0; // whether there are several
layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer Table { uint v[]; };
uint64_t table;
uint from_row[ROWS], from_column[COLUMNS]; // offsets of operands
int place[COLUMNS];                        // of a result in its row; -1: none
V2 sums[ROWS * COLUMNS / 2];
V2 right[COLUMNS]; // of k, then of k + 1

// Rows and columns beyond the last one repeat it, and are not saved. Aligned pairs are whole: there are an even number of columns.
void start(Numbers p, uint row0, uint column0) {
  [[unroll]] for (uint i = 0; i < ROWS; i++) from_row[i] = from_a + min(row0 + i, p.rows - 1) * a_row;
  [[unroll]] for (uint j = 0; j < COLUMNS; j++) {
    uint column = column0 + j, last = p.columns - 1 - (PAIRS_B != 0 ? 1 - j % 2 : 0);
    from_column[j] = from_b + (TABLE != 0 ? column : min(column, last) * b_column);
    place[j] = column < p.columns ? int(column) : -1;
  }
  [[unroll]] for (uint i = 0; i < ROWS * COLUMNS / 2; i++) sums[i] = V2(0);
}
// A column of the image as the place of a window.
void find_places(Numbers p, uint column0) {
  for (uint j = 0; j < COLUMNS; j++) {
    uint rest = column0 + j, at = 0;
    bool inside = rest < p.columns;
    for (uint d = 0; d < p.window_rank; d++) {
      uint index = rest / p.pitch[d];
      rest -= index * p.pitch[d];
      inside = inside && index < p.places[d];
      at = at * p.places[d] + index;
    }
    place[j] = inside ? int(at) : -1;
  }
}

V2 right_pair(uint j, uint at) {
  if (PAIRS_B != 0) return load2(b_matrix, from_column[j] + at);
  return V2(load(b_matrix, from_column[j] + at), load(b_matrix, from_column[j + 1] + at));
}
void add(uint row, A left, uint from) {
  [[unroll]] for (uint j = 0; j < COLUMNS / 2; j++) {
    uint at = row * COLUMNS / 2 + j;
    sums[at] = V2(MULTIPLY_ADD(left, right[from + j].x, sums[at].x), MULTIPLY_ADD(left, right[from + j].y, sums[at].y));
  }
}
// Adds the products of `count` values of k, 1 or 2.
void add_products(uint k, const uint count) {
  [[unroll]] for (uint i = 0; i < count; i++) {
    uint at = TABLE != 0 ? Table(table).v[k + i] : (k + i) * b_inner;
    [[unroll]] for (uint j = 0; j < COLUMNS / 2; j++) right[i * COLUMNS / 2 + j] = right_pair(2 * j, at);
  }
  [[unroll]] for (uint row = 0; row < ROWS; row++) {
    uint at = from_row[row] + k * a_inner;
    if (PAIRS_A != 0 && count == 2) {
      V2 left = load2(a_matrix, at);
      add(row, left.x, 0);
      add(row, left.y, COLUMNS / 2);
    } else {
      [[unroll]] for (uint i = 0; i < count; i++) add(row, load(a_matrix, at + i * a_inner), i * COLUMNS / 2);
    }
  }
}

A bias(uint column) { return BIAS != 0 ? load(operand(2), column) : A(0); }
void save(uint at, A sum, bool is_last) {
  if (STEPS != 0 && push.step > 0) sum += Wide(SCRATCH).v[at];
  if (is_last) store(RESULT, at, sum);
  else Wide(SCRATCH).v[at] = sum;
}
void save_all(Numbers p, uint row0, uint column0) {
  uint rows = p.rows, results = p.results, at = (batch * rows + row0) * results;
  uint64_t result = RESULT;
  bool is_last = STEPS == 0 || end_k(p) == p.inner;
  V2 biases[COLUMNS / 2];
  [[unroll]] for (uint j = 0; j < COLUMNS; j += 2)
    biases[j / 2] = is_last ? V2(bias(uint(max(place[j], 0))), bias(uint(max(place[j + 1], 0)))) : V2(0);
  [[unroll]] for (uint r = 0; r < ROWS; r++, at += results)
    [[unroll]] for (uint j = 0; j < COLUMNS; j += 2) {
      if (row0 + r >= rows || place[j] < 0 && place[j + 1] < 0) continue;
      V2 sum = sums[(r * COLUMNS + j) / 2];
      if (BIAS != 0) sum += biases[j / 2];
      if (PAIRS_C != 0) {
        store2(result, at + uint(place[j]), sum);
        continue;
      }
      if (place[j] >= 0) save(at + uint(place[j]), sum.x, is_last);
      if (place[j + 1] >= 0) save(at + uint(place[j + 1]), sum.y, is_last);
    }
}

void main() {
  Numbers p = READ_NUMBERS;
  read_product(p, LEFT);
  if (TABLE != 0) {
    b_matrix = SCRATCH + p.image;
    table = SCRATCH + p.table;
  }
  uint thread = gl_LocalInvocationID.x, column0 = (gl_WorkGroupID.x * ACROSS + thread % ACROSS) * COLUMNS;
  uint row0 = (gl_WorkGroupID.y * (8 / ACROSS) + thread / ACROSS) * ROWS;
  uint first = first_k(p), end = end_k(p);
  for (uint i = gl_WorkGroupID.z, all = p.batches; i < all; i += gl_NumWorkGroups.z) {
    enter(p, i);
    start(p, row0, column0);
    for (uint k = first; k + 1 < end; k += 2) add_products(k, 2);
    if ((end - first) % 2 == 1) add_products(end - 1, 1);
    if (TABLE != 0) find_places(p, column0);
    save_all(p, row0, column0);
  }
}
