// cooperative.glsl: the product of tiles.glsl by cooperative matrices (VK_KHR_cooperative_matrix), of f16 with sums in f32. A work
// group of 4 subgroups computes 64 x 64 results, and each subgroup 32 x 32 of them as matrices of M x N.
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x_id = 2) in; // 4 subgroups
layout(constant_id = 3) const uint SHAPE = 0x101010; // M, N and K in bytes, the lowest first (ops/tiles.h)
const uint M = SHAPE & 255u, N = SHAPE >> 8 & 255u, K = SHAPE >> 16;
const uint kDepth = 32, kPitchA = kDepth + 8, kPitchB = 64 + 8; // rows begin in different banks of shared memory
shared float16_t tile_a[64 * kPitchA], tile_b[kDepth * kPitchB];
shared float results[4 * M * N];

void fill_tiles(Numbers p, uint row0, uint column0, uint k0, uint rows, uint columns, uint end) {
  for (uint i = gl_LocalInvocationID.x; i < 64 * kDepth; i += gl_WorkGroupSize.x) {
    uint row = row0 + i / kDepth, k = k0 + i % kDepth;
    E a = E(0);
    if (row < rows && k < end) a = left(p, row, k);
    tile_a[i / kDepth * kPitchA + i % kDepth] = a;
  }
  for (uint i = gl_LocalInvocationID.x; i < 64 * kDepth; i += gl_WorkGroupSize.x) {
    uint k = k0 + i / 64, column = column0 + i % 64;
    E b = E(0);
    if (k < end && column < columns) b = right(p, k, column);
    tile_b[i / 64 * kPitchB + i % 64] = b;
  }
}

void multiply(Numbers p, uint rows, uint columns) {
  uint row0 = gl_WorkGroupID.y * 64, column0 = gl_WorkGroupID.x * 64, end = end_k(p);
  uint own_row = gl_SubgroupID / 2 * 32, own_column = gl_SubgroupID % 2 * 32;
  coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator> sums[32 / M * (32 / N)];
  for (uint i = 0; i < 32 / M * (32 / N); i++) sums[i] = coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator>(0);
  for (uint k0 = first_k(p); k0 < end; k0 += kDepth) {
    barrier();
    fill_tiles(p, row0, column0, k0, rows, columns, end);
    barrier();
    for (uint k = 0; k < kDepth; k += K)
      for (uint c = 0; c < 32 / N; c++) {
        coopmat<float16_t, gl_ScopeSubgroup, K, N, gl_MatrixUseB> b;
        coopMatLoad(b, tile_b, k * kPitchB + own_column + c * N, kPitchB, gl_CooperativeMatrixLayoutRowMajor);
        for (uint r = 0; r < 32 / M; r++) {
          coopmat<float16_t, gl_ScopeSubgroup, M, K, gl_MatrixUseA> a;
          coopMatLoad(a, tile_a, (own_row + r * M) * kPitchA + k, kPitchA, gl_CooperativeMatrixLayoutRowMajor);
          sums[r * (32 / N) + c] = coopMatMulAdd(a, b, sums[r * (32 / N) + c]);
        }
      }
  }
  for (uint r = 0; r < 32 / M; r++)
    for (uint c = 0; c < 32 / N; c++) {
      barrier();
      coopMatStore(sums[r * (32 / N) + c], results, gl_SubgroupID * M * N, N, gl_CooperativeMatrixLayoutRowMajor);
      barrier();
      for (uint i = gl_SubgroupInvocationID; i < M * N; i += gl_SubgroupSize) {
        uint row = row0 + own_row + r * M + i / N, column = column0 + own_column + c * N + i % N;
        if (row < rows && column < columns) save(p, row, column, results[gl_SubgroupID * M * N + i] + started(p, row, column));
      }
    }
}
