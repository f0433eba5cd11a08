// batches.glsl: the numbers of a product of matrices (ops/product.h) and the batch at hand. Strides describe transposes; batch dims
// are broadcast (strides 0). MORE_NUMBERS: the shader's other numbers.
NUMBERS {
  uint rows, columns, inner, depth, a_row, a_inner, b_inner, b_column, batches, rank;
  uint sizes[kRank], of_a[kRank], of_b[kRank];
  MORE_NUMBERS
};
uint from_a, from_b, batch;
uint64_t a_matrix, b_matrix;
uint a_row, a_inner, b_inner, b_column; // copies in registers

void read_product(Numbers p, uint a) {
  a_row = p.a_row;
  a_inner = p.a_inner;
  b_inner = p.b_inner;
  b_column = p.b_column;
  a_matrix = operand(a);
  b_matrix = operand(1 - a);
}
void enter(Numbers p, uint number) {
  uint rest = number;
  batch = number;
  from_a = 0;
  from_b = 0;
  for (int d = int(p.rank) - 1; d >= 0; d--) {
    uint at = rest % p.sizes[d];
    rest /= p.sizes[d];
    from_a += at * p.of_a[d];
    from_b += at * p.of_b[d];
  }
}
// The part of the inner dim of this step.
uint first_k(Numbers p) { return uint(push.step) * p.depth; }
uint end_k(Numbers p) { return min(first_k(p) + p.depth, p.inner); }
