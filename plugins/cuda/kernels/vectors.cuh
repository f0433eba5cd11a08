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
template <int BYTES>
struct Unsigned {
  typedef u64 Type;
};
template <>
struct Unsigned<1> {
  typedef u8 Type;
};
template <>
struct Unsigned<2> {
  typedef u16 Type;
};
template <>
struct Unsigned<4> {
  typedef u32 Type;
};
// The bytes of an element as the low ones of a number.
template <class S>
DEVICE u64 bits_of(const S& x) {
  typename Unsigned<sizeof(S)>::Type bits;
  memcpy(&bits, &x, sizeof x);
  return bits;
}
template <class S>
DEVICE S from_bits(u64 bits) {
  const auto low = (typename Unsigned<sizeof(S)>::Type)bits;
  S x;
  memcpy(&x, &low, sizeof x);
  return x;
}

// U vectors of V elements, in registers, as memory has them: what is loaded waits there until the first element is needed, and
// loads of other operands follow meanwhile. Registers have no index, so a loop takes vector 0, and turns the others.
template <class S, int V, int U>
struct Pack {
  static constexpr int kBytes = V * (int)sizeof(S), kWords = kBytes < 4 ? 1 : kBytes / 4, kOfWord = sizeof(S) > 4 ? 1 : 4 / (int)sizeof(S);
  typedef Vector<u32, kWords> Words;
  typedef typename Unsigned<kBytes>::Type Small;  // of up to 4 bytes
  Words words[U] = {};

  DEVICE void load(int u, const S* from) {
    if (kBytes > 4)
      words[u] = load_vector<kWords>((const u32*)from);
    else
      words[u].of[0] = *(const Small*)from;
  }
  DEVICE void store(int u, S* to) const {
    if (kBytes > 4)
      store_vector((u32*)to, words[u]);
    else
      *(Small*)to = (Small)words[u].of[0];
  }
  DEVICE void turn() {
    UNROLL for (int u = 0; u + 1 < U; u++) words[u] = words[u + 1];
    words[U - 1] = {};
  }
  // Element v of vector 0, and, before it is set, of the last one.
  DEVICE S get(int v) const {
    if (sizeof(S) == 8) return from_bits<S>(words[0].of[2 * v] | (u64)words[0].of[2 * v + 1] << 32);
    return from_bits<S>(words[0].of[v / kOfWord] >> (v % kOfWord * 8 * (int)sizeof(S)));
  }
  DEVICE void set(int v, S x) {
    const u64 bits = bits_of(x);
    u32* all = words[U - 1].of;
    if (sizeof(S) == 8)
      all[2 * v] = (u32)bits, all[2 * v + 1] = (u32)(bits >> 32);
    else
      all[v / kOfWord] |= (u32)bits << (v % kOfWord * 8 * (int)sizeof(S));
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
