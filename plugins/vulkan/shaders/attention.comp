// attention.comp: softmax(q k' * scale + mask) v, without the matrix of scores. A work group of 8 x 8 threads computes 64 rows
// of a head: it takes 32 columns of the scores at a time, and scales what it has summed by exp(the highest score before - the
// highest now). In products a thread has 8 rows, 8 apart, and in them 4 of 32 columns; weights it computes for one row.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "op.glsl"
#include "elements.glsl"
layout(local_size_x = 8, local_size_y = 8) in;
layout(constant_id = 2) const uint WIDTH = 1; // of the result, in 32 columns
const uint kRows = 64, kColumns = 32, kDepth = 16; // ops/attention.cc
NUMBERS {
  uint64_t scale;
  uint rows, columns, depth, width, heads, masked, causal, zero_nan, mask_row, mask_column, rank;
  uint sizes[kRank], of_mask[kRank];
};
// Vectors of 4 elements of a row: [4 elements][row] of queries, then keys; or [row][4 elements] of values.
const uint kKeys = kDepth / 4 * kRows;
shared V4 tile[kKeys + kDepth / 4 * kColumns], weights[kColumns / 4 * kRows];
shared A factors[kRows]; // of a row's sums
#define LOWEST uintBitsToFloat(0xff800000u)
uint x, y, thread, row0, mask; // mask: of the head, its first element
A highest, total;              // of row `thread`
V4 sums[8 * WIDTH];            // of rows r * 8 + y

V4 read4(uint operand_at, uint first, uint row, uint rows, uint k, uint size) {
  V4 v = V4(0);
  uint at = first + row * size + k;
  if (row >= rows) return v;
  if (k + 3 < size) return load4(operand(operand_at), at);
  [[unroll]] for (uint j = 0; j < 3; j++)
    if (k + j < size) v[j] = load(operand(operand_at), at + j);
  return v;
}

void multiply_keys(Numbers p, uint head, uint column0) {
  V4 scores[8];
  [[unroll]] for (uint r = 0; r < 8; r++) scores[r] = V4(0);
  for (uint k0 = 0; k0 < p.depth; k0 += kDepth) {
    barrier();
    for (uint i = thread; i < kDepth / 4 * kRows; i += 64)
      tile[i % 4 * kRows + i / 4] = read4(0, head * p.rows * p.depth, row0 + i / 4, p.rows, k0 + i % 4 * 4, p.depth);
    for (uint i = thread; i < kDepth / 4 * kColumns; i += 64)
      tile[kKeys + i % 4 * kColumns + i / 4] =
          read4(1, head * p.columns * p.depth, column0 + i / 4, p.columns, k0 + i % 4 * 4, p.depth);
    barrier();
    [[dont_unroll]] for (uint k = 0; k < kDepth / 4; k++) {
      uint from = kKeys + k * kColumns + x * 4;
      mat4 b = transpose(mat4(tile[from], tile[from + 1], tile[from + 2], tile[from + 3]));
      [[unroll]] for (uint r = 0; r < 8; r++)
        [[unroll]] for (uint j = 0; j < 4; j++) scores[r] = MULTIPLY_ADD(V4(tile[k * kRows + r * 8 + y][j]), b[j], scores[r]);
    }
  }
  [[unroll]] for (uint r = 0; r < 8; r++) weights[x * kRows + r * 8 + y] = scores[r];
}

A score(Numbers p, uint row, uint column, A product) {
  if (column >= p.columns || (p.causal != 0 && column > row)) return LOWEST;
  A s = product * from_bits(p.scale);
  return p.masked != 0 && row < p.rows ? s + load(operand(3), mask + row * p.mask_row + column * p.mask_column) : s;
}

// Scores become weights, a thread a row.
void weigh(Numbers p, uint column0) {
  A most = highest, sum = A(0);
  barrier();
  [[dont_unroll]] for (uint k = 0; k < kColumns / 4; k++) {
    V4 s = weights[k * kRows + thread];
    [[unroll]] for (uint j = 0; j < 4; j++) {
      s[j] = score(p, row0 + thread, column0 + k * 4 + j, s[j]);
      most = greater(most, s[j]);
    }
    weights[k * kRows + thread] = s;
  }
  A shift = most == LOWEST ? A(0) : most; // -inf - -inf is NaN; the weights of such scores are 0
  [[dont_unroll]] for (uint k = 0; k < kColumns / 4; k++) {
    V4 w = exp(weights[k * kRows + thread] - V4(shift));
    weights[k * kRows + thread] = w;
    sum += w.x + w.y + w.z + w.w;
  }
  factors[thread] = exp(highest - shift);
  total = total * factors[thread] + sum;
  highest = most;
}

void multiply_values(Numbers p, uint head, uint column0) {
  [[unroll]] for (uint c = 0; c < WIDTH; c++) {
    barrier();
    for (uint i = thread; i < kColumns * 8; i += 64)
      tile[i] = read4(2, head * p.columns * p.width, column0 + i / 8, p.columns, c * 32 + i % 8 * 4, p.width);
    barrier();
    V4 here[8];
    [[unroll]] for (uint r = 0; r < 8; r++) here[r] = sums[r * WIDTH + c] * factors[r * 8 + y];
    [[dont_unroll]] for (uint k = 0; k < kColumns / 4; k++) {
      uint from = k * 32 + x;
      V4 b0 = tile[from], b1 = tile[from + 8], b2 = tile[from + 16], b3 = tile[from + 24];
      [[unroll]] for (uint r = 0; r < 8; r++) {
        V4 a = weights[k * kRows + r * 8 + y];
        here[r] = MULTIPLY_ADD(V4(a.x), b0, here[r]);
        here[r] = MULTIPLY_ADD(V4(a.y), b1, here[r]);
        here[r] = MULTIPLY_ADD(V4(a.z), b2, here[r]);
        here[r] = MULTIPLY_ADD(V4(a.w), b3, here[r]);
      }
    }
    [[unroll]] for (uint r = 0; r < 8; r++) sums[r * WIDTH + c] = here[r];
  }
}

void store_rows(Numbers p, uint head) {
  factors[thread] = total;
  [[unroll]] for (uint c = 0; c < WIDTH; c++) {
    barrier();
    [[unroll]] for (uint r = 0; r < 8; r++) weights[x * kRows + r * 8 + y] = sums[r * WIDTH + c];
    barrier();
    [[dont_unroll]] for (uint i = thread; i < kRows * 32; i += 64) {
      uint row = i / 32, column = i % 32;
      if (row0 + row >= p.rows || c * 32 + column >= p.width) continue;
      A all = factors[row];
      bool hidden = p.zero_nan != 0 && !(all > A(0)); // all scores are -inf, or one is NaN
      A sum = weights[column / 4 * kRows + row][column % 4];
      store(RESULT, (head * p.rows + row0 + row) * p.width + c * 32 + column, hidden ? A(0) : sum / all);
    }
  }
}

void enter(Numbers p, uint head) {
  highest = LOWEST;
  total = A(0);
  [[unroll]] for (uint i = 0; i < 8 * WIDTH; i++) sums[i] = V4(0);
  mask = 0;
  for (int d = int(p.rank) - 1; d >= 0; d--) {
    mask += head % p.sizes[d] * p.of_mask[d];
    head /= p.sizes[d];
  }
}

void main() {
  Numbers p = READ_NUMBERS;
  x = gl_LocalInvocationID.x, y = gl_LocalInvocationID.y, thread = y * 8 + x;
  row0 = gl_WorkGroupID.x * kRows;
  uint seen = p.causal != 0 ? min(p.columns, row0 + kRows) : p.columns; // by any row of the group
  for (uint head = gl_WorkGroupID.z; head < p.heads; head += gl_NumWorkGroups.z) {
    enter(p, head);
    for (uint column = 0; column < seen; column += kColumns) {
      multiply_keys(p, head, column);
      weigh(p, column);
      multiply_values(p, head, column);
    }
    store_rows(p, head);
    barrier();
  }
}
