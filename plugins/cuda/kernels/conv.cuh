// conv.cuh: the description of a convolution or of a gradient by numbers, as ops/conv.cc makes it, and a result by itself.
#ifndef KEEL_PLUGINS_CUDA_CONV_CUH
#define KEEL_PLUGINS_CUDA_CONV_CUH

constexpr int kRank = 6;  // image dims, at most

// A column is (outer, cell) and an element k of the inner dim is (outer, cell), cells in row-major order of their
// dims. With c and k the coordinates of the two cells in a dim,
//   z = start + c * column_step + k * k_step; place = z / divide, if that has no remainder and is in [0, bound).
// The right side is read at channel * right_cells + the place's offset, channel being a linear function of group and
// the outer numbers; so are the places of the left side and of the result.
struct Plan {
  i64 groups, rows, columns, inner, depth, parts, threads, rank;  // threads: for a result of conv_direct
  i64 column_cells, k_cells, right_cells;
  i64 channel_of_group, channel_of_column, channel_of_k;
  i64 left_of_group, left_of_row, left_of_k;                // an outer k; the cells of k are adjacent
  i64 result_of_group, result_of_row, result_of_column;  // an outer column; its cells are adjacent
  i64 column_dims[kRank], column_step[kRank], start[kRank];
  i64 k_dims[kRank], k_step[kRank], bound[kRank], divide[kRank];
};
DEVICE const Plan& plan_of(const KeelArgs& args) { return *(const Plan*)args.numbers; }
// Operands left, right, result, parts of sums.
template <class S>
DEVICE const S* left_side(const KeelArgs& args) {
  return operand<const S>(args, 0);
}
template <class S>
DEVICE const S* right_side(const KeelArgs& args) {
  return operand<const S>(args, 1);
}
// Numbers below 2^31, which divide faster in 32 bits; ops/conv.cc checks them.
DEVICE int over(i64 n, i64 d) { return (int)((u32)n / (u32)d); }

struct Result {
  i64 group, row, column;
  DEVICE Result(i64 of_group, i64 of_row, i64 of_column) : group(of_group), row(of_row), column(of_column) {}
  DEVICE Result(const Plan& p, i64 i) : group(i / p.columns / p.rows), row(i / p.columns % p.rows), column(i % p.columns) {}
  DEVICE i64 place(const Plan& p) const {
    const i64 outer = over(column, p.column_cells);
    return group * p.result_of_group + row * p.result_of_row + outer * p.result_of_column + column - outer * p.column_cells;
  }
};

// One coordinate: see Plan. false: outside of the right side.
DEVICE bool step_into(const Plan& p, int d, int z, i64* at) {
  if (z < 0) return false;
  int place = z;
  if (p.divide[d] != 1) {
    place = over(z, p.divide[d]);
    if (place * (int)p.divide[d] != z) return false;
  }
  *at = *at * p.bound[d] + place;
  return place < p.bound[d];
}

// The sum for one result over k from first to end in steps; divisions for each k.
template <class S>
DEVICE Compute<S> direct_sum(const KeelArgs& args, const Result& result, i64 first, i64 end, i64 step) {
  const Plan& p = plan_of(args);
  Compute<S> sum = (Compute<S>)0;
  const int outer_column = over(result.column, p.column_cells);
  for (i64 k = first; k < end; k += step) {
    const int outer = over(k, p.k_cells);
    int c = (int)result.column - outer_column * (int)p.column_cells, tap = (int)k - outer * (int)p.k_cells;
    const int cell = tap;
    i64 at = 0, pitch = 1;
    bool inside = true;
    for (int d = (int)p.rank - 1; d >= 0 && inside; d--) {
      const int rest_c = over(c, p.column_dims[d]), rest_k = over(tap, p.k_dims[d]);
      i64 here = 0;
      inside = step_into(p, d, (int)(p.start[d] + (c - rest_c * p.column_dims[d]) * p.column_step[d] + (tap - rest_k * p.k_dims[d]) * p.k_step[d]), &here);
      at += here * pitch;
      pitch *= p.bound[d];
      c = rest_c, tap = rest_k;
    }
    if (!inside) continue;
    const i64 channel = result.group * p.channel_of_group + outer_column * p.channel_of_column + outer * p.channel_of_k;
    const Compute<S> a = Number<S>::from(left_side<S>(args)[result.group * p.left_of_group + result.row * p.left_of_row + outer * p.left_of_k + cell]);
    sum = multiply_add(a, Number<S>::from(right_side<S>(args)[channel * p.right_cells + at]), sum);
  }
  return sum;
}

// The same by the threads of a block; thread 0 has it.
template <class S>
DEVICE Compute<S> block_sum(const KeelArgs& args, const Result& result) {
  __shared__ Compute<S> parts[kThreads];
  const int thread = (int)threadIdx.x;
  Compute<S> sum = direct_sum<S>(args, result, thread, plan_of(args).inner, kThreads);
  for (int half = kThreads / 2; half > 0; half /= 2) {
    parts[thread] = sum;
    __syncthreads();
    if (thread < half) sum += parts[thread + half];
    __syncthreads();
  }
  return sum;
}

#endif
