// vectors.cuh: elements that a thread loads or stores at once. Without headers, for run-time compilation; args.h, scalar.cuh and
// common.cuh come before it.
#ifndef KEEL_PLUGINS_CUDA_VECTORS_CUH
#define KEEL_PLUGINS_CUDA_VECTORS_CUH

#if defined(__CUDACC__)
#define CHECK_ALIGNED(address, bytes)  // tests/cuda/fake/simt.h: the fake driver's finding
#endif

// V elements in memory, at an address that is a multiple of their bytes. Tensors begin at multiples of 256 (loader.cc).
template <class S, int V>
struct alignas(sizeof(S) * V) Vector {
  S of[V];
};
template <int V, class S>
DEVICE Vector<S, V> load_vector(const S* from) {
  CHECK_ALIGNED(from, sizeof(Vector<S, V>));
  return *(const Vector<S, V>*)from;
}
template <int V, class S>
DEVICE void store_vector(S* to, const Vector<S, V>& x) {
  CHECK_ALIGNED(to, sizeof(Vector<S, V>));
  *(Vector<S, V>*)to = x;
}
// N elements of a thread, in registers: a register has no index, so a loop takes the first one and turns the rest.
template <class S, int N>
struct Pack {
  S of[N];
  // Vector u: V elements from there, or that one V times.
  template <int V>
  DEVICE void load(int u, const S* from, bool is_one) {
    Vector<S, V> x;
    if (is_one) {
      const S one = *from;
      UNROLL for (int v = 0; v < V; v++) x.of[v] = one;
    } else {
      x = load_vector<V>(from);
    }
    UNROLL for (int v = 0; v < V; v++) of[u * V + v] = x.of[v];
  }
  template <int V>
  DEVICE void store(int u, S* to) const {
    Vector<S, V> x;
    UNROLL for (int v = 0; v < V; v++) x.of[v] = of[u * V + v];
    store_vector<V>(to, x);
  }
  DEVICE S next() {
    const S first = of[0];
    push(first);
    return first;
  }
  DEVICE void push(S last) {
    UNROLL for (int i = 0; i + 1 < N; i++) of[i] = of[i + 1];
    of[N - 1] = last;
  }
};

// Offsets in N tensors of element i, or of vector i: V elements of the last dim, which is adjacent, or one element for a
// whole vector. Numbers as for find_offsets; small: 32 bits are enough for each offset, as they are for vectors unless
// there is one dim only.
template <int N>
DEVICE void element_offsets(const i64* numbers, int rank, i64 i, i64* at, bool small) {
  small ? find_offsets<N>(numbers, rank, (u32)i, at) : find_offsets<N>(numbers, rank, i, at);
}
template <int N, int V>
DEVICE void vector_offsets(const i64* numbers, int rank, i64 i, i64* at) {
  if (rank == 1) {
    for (int t = 0; t < N; t++) at[t] = numbers[t + 1] ? i * V : 0;
    return;
  }
  const u32 size = (u32)numbers[rank - 1] / V, rest = (u32)i / size, last = ((u32)i - rest * size) * V;
  find_offsets<N>(numbers, rank - 1, rest, at, rank);
  for (int t = 0; t < N; t++) at[t] += numbers[rank * (t + 2) - 1] ? last : 0;
}

#endif
