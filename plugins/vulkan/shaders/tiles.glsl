// tiles.glsl: a matrix product by work groups of 16 x 16 threads, which compute ROWS x COLUMNS results each, 16 apart. The shader
// has A left(row, k), A right(k, column), for row, k, column within the sizes given, and for results A started(row, column) and
// void save(row, column, sum): step s adds the products of `depth` values of k from s * depth on.
layout(local_size_x = 16, local_size_y = 16) in;
layout(constant_id = 2) const uint ROWS = 4;
layout(constant_id = 3) const uint COLUMNS = 4;
const uint kDepth = 16;
const uint kHeight = 16 * ROWS, kWidth = 16 * COLUMNS;
shared A tile_a[kDepth * 16 * ROWS], tile_b[kDepth * 16 * COLUMNS];

void multiply(Numbers p, uint rows, uint columns) {
  uint inner = end_k(p);
  uint x = gl_LocalInvocationID.x, y = gl_LocalInvocationID.y, thread = y * 16 + x;
  uint row0 = gl_WorkGroupID.y * kHeight, column0 = gl_WorkGroupID.x * kWidth;
  A sums[ROWS * COLUMNS];
  for (uint i = 0; i < ROWS; i++)
    for (uint j = 0; j < COLUMNS; j++) {
      uint row = row0 + y + 16 * i, column = column0 + x + 16 * j;
      sums[i * COLUMNS + j] = row < rows && column < columns ? started(p, row, column) : A(0);
    }
  for (uint k0 = first_k(p); k0 < inner; k0 += kDepth) {
    barrier();
    for (uint i = thread; i < kHeight * kDepth; i += 256) {
      uint k = k0 + i % kDepth, row = row0 + i / kDepth;
      tile_a[i % kDepth * kHeight + i / kDepth] = row < rows && k < inner ? left(p, row, k) : A(0);
    }
    for (uint i = thread; i < kWidth * kDepth; i += 256) {
      uint k = k0 + i / kWidth, column = column0 + i % kWidth;
      tile_b[i] = column < columns && k < inner ? right(p, k, column) : A(0);
    }
    barrier();
    for (uint k = 0; k < kDepth; k++) {
      A a[ROWS], b[COLUMNS];
      for (uint i = 0; i < ROWS; i++) a[i] = tile_a[k * kHeight + y + 16 * i];
      for (uint j = 0; j < COLUMNS; j++) b[j] = tile_b[k * kWidth + x + 16 * j];
      for (uint i = 0; i < ROWS; i++)
        for (uint j = 0; j < COLUMNS; j++)
          sums[i * COLUMNS + j] = MULTIPLY_ADD(a[i], b[j], sums[i * COLUMNS + j]);
    }
  }
  for (uint i = 0; i < ROWS; i++)
    for (uint j = 0; j < COLUMNS; j++) {
      uint row = row0 + y + 16 * i, column = column0 + x + 16 * j;
      if (row < rows && column < columns) save(p, row, column, sums[i * COLUMNS + j]);
    }
}
