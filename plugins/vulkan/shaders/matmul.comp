// matmul.comp: c[batch] = a[batch] b[batch]: a work group computes 64 x 64 results, a thread 4 x 4 of them. Strides describe
// transposes; batch dims are broadcast (strides 0).
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = 16, local_size_y = 16) in;
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Elements { float v[]; };
PARAMS {
  uint64_t a, b, c, scratch, fault, code;
  uint rows, columns, inner, a_row, a_inner, b_inner, b_column, batches, rank;
  uint sizes[kRank], of_a[kRank], of_b[kRank];
};
const uint kTile = 64, kDepth = 16;
shared float tile_a[kDepth][kTile + 1], tile_b[kDepth][kTile + 1];

void multiply(Params p, uint batch, uint from_a, uint from_b) {
  uint x = gl_LocalInvocationID.x, y = gl_LocalInvocationID.y, thread = y * 16 + x;
  uint row0 = gl_WorkGroupID.y * kTile, column0 = gl_WorkGroupID.x * kTile;
  float sums[4][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}};
  for (uint k0 = 0; k0 < p.inner; k0 += kDepth) {
    barrier();
    for (uint i = thread; i < kTile * kDepth; i += 256) {
      uint k = i % kDepth, m = i / kDepth, row = row0 + m, at = k0 + k;
      tile_a[k][m] = row < p.rows && at < p.inner ? Elements(p.a).v[from_a + row * p.a_row + at * p.a_inner] : 0.0;
      uint n = i % kTile, column = column0 + n;
      k = i / kTile;
      at = k0 + k;
      tile_b[k][n] = column < p.columns && at < p.inner ? Elements(p.b).v[from_b + at * p.b_inner + column * p.b_column] : 0.0;
    }
    barrier();
    for (uint k = 0; k < kDepth; k++)
      for (uint i = 0; i < 4; i++)
        for (uint j = 0; j < 4; j++) sums[i][j] = fma(tile_a[k][y + 16 * i], tile_b[k][x + 16 * j], sums[i][j]);
  }
  for (uint i = 0; i < 4; i++)
    for (uint j = 0; j < 4; j++) {
      uint row = row0 + y + 16 * i, column = column0 + x + 16 * j;
      if (row < p.rows && column < p.columns) Elements(p.c).v[(batch * p.rows + row) * p.columns + column] = sums[i][j];
    }
}

void main() {
  Params p = Params(push.params);
  for (uint batch = gl_WorkGroupID.z; batch < p.batches; batch += gl_NumWorkGroups.z) {
    uint rest = batch, from_a = 0, from_b = 0;
    for (int d = int(p.rank) - 1; d >= 0; d--) {
      uint at = rest % p.sizes[d];
      rest /= p.sizes[d];
      from_a += at * p.of_a[d];
      from_b += at * p.of_b[d];
    }
    multiply(p, batch, from_a, from_b);
  }
}
