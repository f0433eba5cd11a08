// tiles.glsl: a matrix product by work groups of 16 x 16 threads. A thread computes 4 ROWS x 4 COLUMNS results: rows
// 16 apart, columns in vectors of 4. The shader has A left(row, k), A right(k, column), for row, k, column within the sizes
// given, left4 and right4 for 4 values of k or columns from there on, and for results A started(row, column) and
// void save(row, column, sum): step s adds the products of `depth` values of k from s * depth on.
layout(local_size_x = 16, local_size_y = 16) in;
layout(constant_id = 2) const uint ROWS = 1;
layout(constant_id = 3) const uint COLUMNS = 1;
const uint kDepth = 16;
shared V4 tile_a[kDepth * 16 * ROWS], tile_b[kDepth * 16 * COLUMNS];

// The left tile has vectors of 4 values of k, the right tile of 4 columns.
void fill_tiles(Numbers p, uint row0, uint column0, uint k0, uint rows, uint columns, uint end) {
  uint thread = gl_LocalInvocationID.y * 16 + gl_LocalInvocationID.x;
  for (uint i = thread; i < 256 * ROWS; i += 256) {
    uint k = k0 + i % 4 * 4, row = row0 + i / 4;
    V4 a = V4(0);
    if (row < rows) {
      if (k + 3 < end) a = left4(p, row, k);
      else
        for (uint j = 0; j < 3; j++)
          if (k + j < end) a[j] = left(p, row, k + j);
    }
    tile_a[i % 4 * 64 * ROWS + i / 4] = a;
  }
  for (uint i = thread; i < 256 * COLUMNS; i += 256) {
    uint k = k0 + i / (16 * COLUMNS), column = column0 + i % (16 * COLUMNS) * 4;
    V4 b = V4(0);
    if (k < end) {
      if (column + 3 < columns) b = right4(p, k, column);
      else
        for (uint j = 0; j < 3; j++)
          if (column + j < columns) b[j] = right(p, k, column + j);
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
    for (uint k = 0; k < kDepth; k += 4)
      for (uint c = 0; c < COLUMNS; c++) {
        uint from = k * 16 * COLUMNS + c * 16 + x;
        V4 b0 = tile_b[from], b1 = tile_b[from + 16 * COLUMNS], b2 = tile_b[from + 32 * COLUMNS], b3 = tile_b[from + 48 * COLUMNS];
        for (uint r = 0; r < 4 * ROWS; r++) {
          V4 a = tile_a[k * 16 * ROWS + r * 16 + y], sum = sums[r * COLUMNS + c];
          sum = MULTIPLY_ADD(V4(a.x), b0, sum);
          sum = MULTIPLY_ADD(V4(a.y), b1, sum);
          sum = MULTIPLY_ADD(V4(a.z), b2, sum);
          sums[r * COLUMNS + c] = MULTIPLY_ADD(V4(a.w), b3, sum);
        }
      }
  }
  for (uint r = 0; r < 4 * ROWS; r++)
    for (uint c = 0; c < COLUMNS; c++)
      for (uint j = 0; j < 4; j++) {
        uint row = row0 + r * 16 + y, column = column0 + c * 64 + x * 4 + j;
        if (row < rows && column < columns) save(p, row, column, sums[r * COLUMNS + c][j] + started(p, row, column));
      }
}
