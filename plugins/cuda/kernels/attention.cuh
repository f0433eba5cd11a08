// attention.cuh: what both kernels of attention share: numbers, the operands of one matrix, the parts of a batch. ops/attention.cc
#ifndef KEEL_PLUGINS_CUDA_ATTENTION_CUH
#define KEEL_PLUGINS_CUDA_ATTENTION_CUH

// The numbers, then the sizes of the outer dims and the mask's strides in them.
struct AttentionNumbers {
  i64 matrices, rows, columns, width, scale, causal, zero_nan, masked, mask_row, mask_column, rank;
};
DEVICE const AttentionNumbers& numbers_of(const KeelArgs& args) { return *(const AttentionNumbers*)args.numbers; }

// One matrix of the batch. Sizes stay in constant memory, for registers are few.
template <class S>
struct Operands {
  const AttentionNumbers* n;
  const S *q, *k, *v, *mask;
  f32 scale;
  DEVICE int rows() const { return (int)n->rows; }
  DEVICE int columns() const { return (int)n->columns; }
  DEVICE int width() const { return (int)n->width; }
  DEVICE bool causal() const { return n->causal != 0; }
  // Keys that one of the rows before `end` sees.
  DEVICE int seen(int end) const { return causal() && end < columns() ? end : columns(); }
};

// The operands of a kernel are q, k, v, the result, and the mask.
template <class S>
DEVICE Operands<S> operands_of(const KeelArgs& args, i64 matrix) {
  const AttentionNumbers& n = numbers_of(args);
  i64 of_mask[1];
  find_offsets<1>(args.numbers + sizeof(AttentionNumbers) / sizeof(i64), (int)n.rank, matrix, of_mask);
  Operands<S> of;
  of.n = &n;
  of.q = operand<const S>(args, 0) + matrix * n.rows * n.width;
  of.k = operand<const S>(args, 1) + matrix * n.columns * n.width;
  of.v = operand<const S>(args, 2) + matrix * n.columns * n.width;
  of.mask = n.masked ? operand<const S>(args, 4) + of_mask[0] : nullptr;
  of.scale = (f32)__longlong_as_double(n.scale);
  return of;
}

// Calls f(operands, first row, result) for each part of ROWS rows that is the block's: the last rows of all matrices, which
// see most, first.
template <class S, int ROWS, class F>
DEVICE void each_part(const KeelArgs& args, F f) {
  const AttentionNumbers& n = numbers_of(args);
  const i64 parts = (n.rows + ROWS - 1) / ROWS;
  for (i64 i = blockIdx.x; i < parts * n.matrices; i += gridDim.x) {
    const i64 matrix = i % n.matrices, part = parts - 1 - i / n.matrices;
    __syncthreads();  // before shared memory is written again
    f(operands_of<S>(args, matrix), (int)part * ROWS, operand<S>(args, 3) + matrix * n.rows * n.width);
  }
}

#endif
