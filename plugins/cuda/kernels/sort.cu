// sort.cu: top_k by bitonic sorts of (element, index). The order is total, equal elements by their index, so results do
// not depend on the network.
//   sort_S      a block sorts a piece of a row in shared memory and keeps its first entries. For few results of a long
//               row there are a few rounds: each sorts the entries that the round before has kept.
//   exchange_S  for many results of a long row: a stage whose pairs are too far apart for a block
#include "args.h"
#include "scalar.cuh"
#include "common.cuh"
#include "numbers.cuh"

constexpr int kPiece = 2048;            // ops/sort.cc
constexpr int kNone = 0x7fffffff;       // index of entries that fill a piece up; after all others

// Entries of a row are in pieces of `width`, a power of two; sort_S writes the first `kept` of each piece. Lists are in
// scratch, at these byte offsets; from_values -1: x; to_values -1: the results. Stages k from `first` to `last`. whole:
// all pieces of a row are one sort, so odd ones are in descending order before the last stage.
struct Numbers {
  i64 rows, size, largest, results, entries, width, pieces, kept, first, last, whole;
  i64 from_values, from_indices, to_values, to_indices;
  i64 k, j;  // of exchange_S
};
DEVICE const Numbers& numbers_of(const KeelArgs& args) { return *(const Numbers*)args.numbers; }

template <class S>
struct Entry {
  Compute<S> value;
  int index;
};
// NaN first; of equal elements the first.
template <class S>
DEVICE bool precedes(const Numbers& n, Entry<S> a, Entry<S> b) {
  if (a.index == kNone || b.index == kNone) return a.index < b.index;
  if (is_nan(a.value) != is_nan(b.value)) return is_nan(a.value);
  if (a.value < b.value || a.value > b.value) return (n.largest != 0) == (a.value > b.value);
  return a.index < b.index;
}

// Operands x, elements, indices of the results, scratch.
template <class T>
DEVICE T* list(const KeelArgs& args, i64 offset) {
  return (T*)(address_of(args, 3) + offset);
}
template <class S>
DEVICE Entry<S> read(const KeelArgs& args, i64 row, i64 i) {
  const Numbers& n = numbers_of(args);
  if (i >= n.entries) return {(Compute<S>)0, kNone};
  if (n.from_values < 0) return {Number<S>::from(operand<const S>(args, 0)[row * n.size + i]), (int)i};
  const i64 at = row * n.entries + i;
  return {list<Compute<S>>(args, n.from_values)[at], list<int>(args, n.from_indices)[at]};
}
template <class S>
DEVICE void write(const KeelArgs& args, i64 row, i64 i, Entry<S> entry) {
  const Numbers& n = numbers_of(args);
  if (n.to_values >= 0) {
    const i64 at = row * (n.pieces * n.kept) + i;
    list<Compute<S>>(args, n.to_values)[at] = entry.value;
    list<int>(args, n.to_indices)[at] = entry.index;
  } else if (i < n.results) {
    operand<S>(args, 1)[row * n.results + i] = operand<const S>(args, 0)[row * n.size + entry.index];
    operand<i64>(args, 2)[row * n.results + i] = entry.index;
  }
}

// Puts a pair in the order of stage k, by its place in the row.
template <class S>
DEVICE void exchange(const Numbers& n, Compute<S>* values, int* indices, i64 low, i64 j, i64 k, i64 place) {
  const Entry<S> a = {values[low], indices[low]}, b = {values[low + j], indices[low + j]};
  if (precedes<S>(n, b, a) != ((place & k) == 0)) return;
  values[low] = b.value, indices[low] = b.index;
  values[low + j] = a.value, indices[low + j] = a.index;
}

template <class S>
DEVICE void sort(const KeelArgs& args) {
  __shared__ Compute<S> values[kPiece];
  __shared__ int indices[kPiece];
  const Numbers& n = numbers_of(args);
  const int thread = (int)threadIdx.x, width = (int)n.width;
  for (i64 block = blockIdx.x; block < n.rows * n.pieces; block += gridDim.x) {
    const i64 row = block / n.pieces, piece = block % n.pieces, start = piece * width;
    for (int i = thread; i < width; i += kThreads) {
      const Entry<S> entry = read<S>(args, row, start + i);
      values[i] = entry.value, indices[i] = entry.index;
    }
    for (i64 k = n.first; k <= n.last; k *= 2)
      for (int j = (int)(k < width ? k : width) / 2; j > 0; j /= 2) {
        __syncthreads();
        for (int pair = thread; pair < width / 2; pair += kThreads) {
          const int low = 2 * j * (pair / j) + pair % j;
          exchange<S>(n, values, indices, low, j, k, n.whole ? start + low : low);
        }
      }
    __syncthreads();
    for (int i = thread; i < (int)n.kept; i += kThreads)
      write<S>(args, row, piece * n.kept + i, {values[i], indices[i]});
    __syncthreads();
  }
}

template <class S>
DEVICE void exchange_stage(const KeelArgs& args) {
  const Numbers& n = numbers_of(args);
  const i64 pairs = n.entries / 2;
  for (i64 i = first_element(); i < n.rows * pairs; i += grid_size()) {
    const i64 row = i / pairs, pair = i % pairs, low = 2 * n.j * (pair / n.j) + pair % n.j;
    exchange<S>(n, list<Compute<S>>(args, n.from_values) + row * n.entries,
                list<int>(args, n.from_indices) + row * n.entries, low, n.j, n.k, low);
  }
}

#define DTYPE(S, name)                                  \
  BLOCK_KERNEL(sort_##name) { sort<S>(args); }          \
  KERNEL(exchange_##name) { exchange_stage<S>(args); }
#define ONLY_NUMBERS
#include "dtypes.inc"
