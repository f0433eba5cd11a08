// groups.cuh: threads that work on one row: what they combine, and the elements that each of them keeps in registers.
#ifndef KEEL_PLUGINS_CUDA_GROUPS_CUH
#define KEEL_PLUGINS_CUDA_GROUPS_CUH

constexpr u32 kAllLanes = 0xffffffff;

// The value of the lane whose number differs by `distance` in one bit.
template <class C>
DEVICE C from_lane(C mine, int distance) {
  return (C)__shfl_xor_sync(kAllLanes, mine, distance);
}
DEVICE __int128 from_lane(__int128 mine, int distance) {
  const u64 high = from_lane((u64)(mine >> 64), distance);
  return (__int128)high << 64 | from_lane((u64)mine, distance);
}

// `size` threads, a power of two; more than a warp: all of a block. All threads of a block take part in each combine(), which
// gives each of them the same bits.
struct Group {
  int size;
  DEVICE int rank() const { return (int)threadIdx.x & (size - 1); }
  template <class C, class F>
  DEVICE C combine(C mine, F f) const {
    mine = in_warp(mine, size < kWarp ? size : kWarp, f);
    if (size <= kWarp) return mine;
    __shared__ C parts[kMostThreads / kWarp];
    const int thread = (int)threadIdx.x, warps = size / kWarp;
    __syncthreads();  // the parts of the last time are read
    if (thread % kWarp == 0) parts[thread / kWarp] = mine;
    __syncthreads();
    return in_warp(parts[thread & (warps - 1)], warps, f);
  }
  template <class C>
  DEVICE C sum(C mine) const {
    return combine(mine, [](C a, C b) { return a + b; });
  }

 private:
  template <class C, class F>
  static DEVICE C in_warp(C mine, int lanes, F f) {
    for (int distance = lanes / 2; distance > 0; distance /= 2)
      mine = f(mine, from_lane(mine, distance));
    return mine;
  }
};

// Calls f(row, group) for each row. Threads without a row get `rows`, so that all meet.
template <class F>
DEVICE void each_row(i64 rows, i64 threads, F f) {
  const i64 of_block = (i64)blockDim.x / threads;
  for (i64 base = blockIdx.x * of_block; base < rows; base += gridDim.x * of_block) {
    const i64 row = base + threadIdx.x / threads;
    f(row < rows ? row : rows, Group{(int)threads});
  }
}

// A thread's vectors of a row: W elements each, as far apart as the group is wide. The first kKept stay in registers, the
// others are read again each time.
template <class S, int W>
struct Row {
  static constexpr int kKept = W == 1 ? 12 : 128 / (W * (int)sizeof(S));
  const S* x;
  u32 size, threads, rank;

  DEVICE Row(const S* row, u32 elements, Group group)
      : x(row), size(elements), threads((u32)group.size), rank((u32)group.rank()) {
    u32 first = rank * W;
    UNROLL for (int u = 0; u < kKept; u++, first += threads * W)
      if (first < size) all[u].load(0, x + first);
  }
  // f(vector, number of its first element)
  template <class F>
  DEVICE void each(F f) {
    u32 first = rank * W;
    UNROLL for (int u = 0; u < kKept; u++, first += threads * W) {
      OPAQUE(first);
      if (first < size) f(kept(u), (int)first);
    }
    NO_UNROLL for (; first < size; first += threads * W) f(load_vector<W>(x + first), (int)first);
  }

 private:
  // Registers are OPAQUE, or else the compiler keeps what it computed of them in one pass for the next, in more registers than
  // there are.
  Pack<S, W, 1> all[kKept];
  DEVICE Vector<S, W> kept(int u) {
    Vector<S, W> x;
    UNROLL for (int w = 0; w < all[u].kWords; w++) OPAQUE(all[u].words[0].of[w]);
    UNROLL for (int v = 0; v < W; v++) x.of[v] = all[u].get(v);
    return x;
  }
};

#endif
