// tiles.glsl: a matrix product by work groups of 16 x 16 threads. A thread computes blocks of 4 x 4 results, ROWS x COLUMNS of
// them, 64 apart. The shader has A left(row, k), A right(k, column), for row, k, column within the sizes given, and for results
// A started(row, column) and void save(row, column, sum): step s adds the products of `depth` values of k from s * depth on.
layout(local_size_x = 16, local_size_y = 16) in;
layout(constant_id = 2) const uint ROWS = 1;
layout(constant_id = 3) const uint COLUMNS = 1;
const uint kDepth = 16;
shared V4 tile_a[kDepth * 16 * ROWS], tile_b[kDepth * 16 * COLUMNS];

void fill_tiles(Numbers p, uint row0, uint column0, uint k0, uint rows, uint columns, uint end) {
  uint thread = gl_LocalInvocationID.y * 16 + gl_LocalInvocationID.x;
  for (uint i = thread; i < 256 * ROWS; i += 256) {
    uint k = k0 + i % kDepth, row = row0 + i / kDepth * 4;
    V4 a = V4(0);
    if (k < end) {
      if (row < rows) a.x = left(p, row, k);
      if (row + 1 < rows) a.y = left(p, row + 1, k);
      if (row + 2 < rows) a.z = left(p, row + 2, k);
      if (row + 3 < rows) a.w = left(p, row + 3, k);
    }
    tile_a[i % kDepth * 16 * ROWS + i / kDepth] = a;
  }
  for (uint i = thread; i < 256 * COLUMNS; i += 256) {
    uint k = k0 + i / (16 * COLUMNS), column = column0 + i % (16 * COLUMNS) * 4;
    V4 b = V4(0);
    if (k < end) {
      if (column < columns) b.x = right(p, k, column);
      if (column + 1 < columns) b.y = right(p, k, column + 1);
      if (column + 2 < columns) b.z = right(p, k, column + 2);
      if (column + 3 < columns) b.w = right(p, k, column + 3);
    }
    tile_b[i] = b;
  }
}

void multiply(Numbers p, uint rows, uint columns) {
  uint x = gl_LocalInvocationID.x, y = gl_LocalInvocationID.y, end = end_k(p);
  uint row0 = gl_WorkGroupID.y * 64 * ROWS, column0 = gl_WorkGroupID.x * 64 * COLUMNS;
  V4 sums[4 * ROWS * COLUMNS];
  for (uint i = 0; i < 4 * ROWS * COLUMNS; i++) sums[i] = V4(0);
  for (uint k0 = first_k(p); k0 < end; k0 += kDepth) {
    barrier();
    fill_tiles(p, row0, column0, k0, rows, columns, end);
    barrier();
    for (uint k = 0; k < kDepth; k++)
      for (uint r = 0; r < ROWS; r++) {
        V4 a = tile_a[k * 16 * ROWS + r * 16 + y];
        for (uint c = 0; c < COLUMNS; c++) {
          V4 b = tile_b[k * 16 * COLUMNS + c * 16 + x];
          uint at = (r * COLUMNS + c) * 4;
          sums[at] = MULTIPLY_ADD(V4(a.x), b, sums[at]);
          sums[at + 1] = MULTIPLY_ADD(V4(a.y), b, sums[at + 1]);
          sums[at + 2] = MULTIPLY_ADD(V4(a.z), b, sums[at + 2]);
          sums[at + 3] = MULTIPLY_ADD(V4(a.w), b, sums[at + 3]);
        }
      }
  }
  for (uint r = 0; r < ROWS; r++)
    for (uint c = 0; c < COLUMNS; c++)
      for (uint i = 0; i < 4; i++)
        for (uint j = 0; j < 4; j++) {
          uint row = row0 + r * 64 + y * 4 + i, column = column0 + c * 64 + x * 4 + j;
          if (row < rows && column < columns)
            save(p, row, column, sums[(r * COLUMNS + c) * 4 + i][j] + started(p, row, column));
        }
}
