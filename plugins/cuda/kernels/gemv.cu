// gemv.cu: products of 1 to 8 vectors with a matrix w, bound by reading w: each element of w is read once. A block computes 32
// results of each vector ("outs"). Its threads divide the inner dim, copy their elements of w to shared memory some steps
// ahead, and finally add their sums in a fixed order. A few outs and a long inner dim are divided among blocks ("parts"), whose
// sums gemv_sum adds.
//   gemv_nR_S  w[inner, outs]; R: vectors, at most
//   gemv_tR_S  w[outs, inner]
#include "args.h"
#include "scalar.cuh"
#include "common.cuh"
#include "copies.cuh"
#include "numbers.cuh"

// ops/gemv.cc; then sizes of the batch dims, and strides of the vectors and of w there.
struct Plan {
  i64 vectors, outs, inner, batches, parts, depth;  // depth: elements of the inner dim of a part
  i64 tiles;                                        // of kOuts outs of a part of a batch
  i64 of_vector, of_inner;                          // strides of the vectors
  i64 pitch;                                        // between lines of w, whose elements are adjacent
  i64 result_of_vector, result_of_out;
  i64 biased, bias_of_vector, bias_of_out;
  i64 rank;
};
DEVICE const Plan& plan_of(const KeelArgs& args) { return *(const Plan*)args.numbers; }
DEVICE const i64* batch_dims(const KeelArgs& args) { return args.numbers + sizeof(Plan) / sizeof(i64); }

constexpr int kOuts = 32, kWords = 4;        // kWords: of w, of a thread in a step
constexpr int kRing = 8 * 16 * kThreads;     // bytes of w that are copied ahead
constexpr int kPadded = kOuts + 4;           // without bank conflicts
constexpr int kSlices = kThreads / kOuts;    // of the threads' sums

// In a step a thread multiplies kWords words of w, which are in adjacent lines.
template <class S, int R, bool TRANSPOSED>
struct Form {
  static constexpr int kBytes = R == 8 ? 8 : 16;              // of a word: sums of more outs would need too many registers
  static constexpr int kTurns = kRing / (kBytes * kWords * kThreads);
  static constexpr int kEach = kBytes / sizeof(S);            // elements of a word
  static constexpr int kMine = TRANSPOSED ? kWords : kEach;   // outs of a thread
  static constexpr int kInner = TRANSPOSED ? kEach : kWords;  // elements of the inner dim
  static constexpr int kAcross = kOuts / kMine, kDown = kThreads / kAcross;
  static constexpr int kStep = kDown * kInner;                // elements of the inner dim of a block's step
  typedef Words<kBytes / 4> Word;
  static DEVICE int across() { return (int)threadIdx.x / (TRANSPOSED ? kDown : 1) % kAcross; }
  static DEVICE int down() { return (int)threadIdx.x / (TRANSPOSED ? 1 : kAcross) % kDown; }
};

// The outs and the part of the inner dim of a block. Counted in 32 bits, which divide faster; ops/gemv.cc checks the sizes.
struct Range {
  u32 part, batch;
  i64 first_out, first, end;
  DEVICE Range(const Plan& p, u32 tile) {
    const u32 strips = ((u32)p.outs + kOuts - 1) / kOuts, rest = tile / strips;
    part = rest % (u32)p.parts, batch = rest / (u32)p.parts, first_out = (i64)(tile % strips) * kOuts;
    first = part * p.depth, end = first + p.depth < p.inner ? first + p.depth : p.inner;
  }
};

// A thread's words of w.
template <class F, class S, bool TRANSPOSED>
struct Matrix {
  typedef typename F::Word Word;
  Word* ring;     // of the thread: each kThreads words
  const S* at;        // of the next step
  int lines, length;  // left from there; may be negative
  i64 pitch;
  bool aligned;

  DEVICE Matrix(const Plan& p, const Range& r, const S* w, Word* words) : ring(words + threadIdx.x), pitch(p.pitch) {
    const int out = F::across() * F::kMine, k = F::down() * F::kInner;
    const int outs = (int)(p.outs - r.first_out) - out, inner = (int)(r.end - r.first) - k;
    lines = TRANSPOSED ? outs : inner, length = TRANSPOSED ? inner : outs;
    at = w + (TRANSPOSED ? (r.first_out + out) * pitch + r.first + k : (r.first + k) * pitch + r.first_out + out);
    aligned = ((u64)w | (u64)pitch * sizeof(S)) % F::kBytes == 0;  // then no word is partly beyond the end
  }
  // Copies word j, and zeros beyond the end of w.
  DEVICE void copy(int slot, int j) {
    Word* to = ring + slot * kThreads;
    const S* from = at + j * pitch;
    if (aligned) return copy_async<F::kBytes>(to, from, j < lines && 0 < length);
    NO_UNROLL for (int i = 0; i < F::kEach; i++)
      ((S*)to)[i] = j < lines && i < length ? from[i] : S();
  }
  DEVICE void advance() {
    at += TRANSPOSED ? F::kStep : F::kStep * pitch;
    (TRANSPOSED ? length : lines) -= F::kStep;
  }
};

// The vectors' elements of a step, in shared memory: read once by a block, at any strides. Two steps take turns.
template <class F, class S, int R>
struct Vectors {
  static constexpr int kAll = R * F::kStep, kLoads = (kAll + kThreads - 1) / kThreads, kRows = kThreads / F::kStep;
  static constexpr int kTaken = F::kInner * sizeof(S) / 4;
  S* shared;    // [2][R][kStep]
  const S* at;  // of the next step
  int vectors, inner;  // left from there; may be negative
  S next[kLoads];

  DEVICE Vectors(const Plan& p, const Range& r, const S* x, Words<4>* words) : shared((S*)words) {
    const int vector = (int)threadIdx.x / F::kStep, k = (int)threadIdx.x % F::kStep;
    at = x + vector * p.of_vector + (r.first + k) * p.of_inner;
    vectors = (int)p.vectors - vector, inner = (int)(r.end - r.first) - k;
  }
  DEVICE void load(const Plan& p) {
    UNROLL for (int i = 0; i < kLoads; i++)
      next[i] = i * kRows < vectors && 0 < inner ? at[i * kRows * p.of_vector] : S();
    at += F::kStep * p.of_inner, inner -= F::kStep;
  }
  DEVICE void store(int turn) {
    UNROLL for (int i = 0; i < kLoads; i++)
      if (kAll % kThreads == 0 || threadIdx.x < kAll) shared[turn * kAll + i * kThreads + threadIdx.x] = next[i];
  }
  DEVICE void take(int turn, Words<kTaken> (&mine)[R]) const {
    UNROLL for (int r = 0; r < R; r++) mine[r] = *(const Words<kTaken>*)(shared + turn * kAll + r * F::kStep + F::down() * F::kInner);
  }
};

// Sums of a thread: [vector][out].
template <class S, int R, bool TRANSPOSED>
using Sums = f32[R][Form<S, R, TRANSPOSED>::kMine];

// Adds the products of word j of a step.
template <class S, int R, bool TRANSPOSED, class Word, class Taken>
DEVICE void add_products(const Word& w, int j, const Taken (&x)[R], Sums<S, R, TRANSPOSED>& sums) {
  UNROLL for (int i = 0; i < (int)(sizeof w / sizeof(S)); i++) {
    const f32 b = Packed<S>::at(w.at, i);
    UNROLL for (int r = 0; r < R; r++) {
      f32& sum = sums[r][TRANSPOSED ? j : i];
      sum = multiply_add(Packed<S>::at(x[r].at, TRANSPOSED ? i : j), b, sum);
    }
  }
}

template <class S, int R, bool TRANSPOSED, class F = Form<S, R, TRANSPOSED>>
DEVICE void sum_part(const Plan& p, const Range& range, Matrix<F, S, TRANSPOSED> matrix, Vectors<F, S, R> x, Sums<S, R, TRANSPOSED>& sums) {
  UNROLL for (int turn = 0; turn < F::kTurns; turn++) {
    UNROLL for (int j = 0; j < kWords; j++) {
      matrix.copy(turn * kWords + j, j);
      end_copies();
    }
    matrix.advance();
  }
  x.load(p);
  x.store(0);
  __syncthreads();
  const int steps = (int)((range.end - range.first + F::kStep - 1) / F::kStep);
  NO_UNROLL for (int step = 0; step < steps; step++) {
    const int slot = step % F::kTurns * kWords;
    Words<Vectors<F, S, R>::kTaken> taken[R];
    x.load(p);
    x.take(step % 2, taken);
    UNROLL for (int j = 0; j < kWords; j++) {
      await_copies<F::kTurns * kWords - 1>();
      const typename F::Word word = matrix.ring[(slot + j) * kThreads];
      matrix.copy(slot + j, j);
      end_copies();
      add_products<S, R, TRANSPOSED>(word, j, taken, sums);
    }
    matrix.advance();
    x.store(1 - step % 2);
    __syncthreads();
  }
  await_copies<0>();
}

// Adds the threads' sums of each out, first in slices. Thread i then has the one of vector i / kOuts and out i % kOuts.
template <class F, int R>
DEVICE f32 combined(f32* shared, const f32 (&sums)[R][F::kMine]) {
  const int out = (int)threadIdx.x % kOuts, slice = (int)threadIdx.x / kOuts;
  f32 mine[R];
  UNROLL for (int r = 0; r < R; r++) {
    __syncthreads();
    UNROLL for (int i = 0; i < F::kMine; i++) shared[F::down() * kPadded + F::across() * F::kMine + i] = sums[r][i];
    __syncthreads();
    mine[r] = 0;
    UNROLL for (int i = 0; i < F::kDown / kSlices; i++) mine[r] += shared[(i * kSlices + slice) * kPadded + out];
  }
  __syncthreads();
  UNROLL for (int r = 0; r < R; r++) shared[(r * kSlices + slice) * kOuts + out] = mine[r];
  __syncthreads();
  f32 sum = 0;
  if (slice < R)
    UNROLL for (int i = 0; i < kSlices; i++) sum += shared[(slice * kSlices + i) * kOuts + out];
  return sum;
}

// Operands vectors, w, result, bias, or vectors, w, parts of sums.
template <class S, int R, bool TRANSPOSED>
DEVICE void gemv(const KeelArgs& args) {
  typedef Form<S, R, TRANSPOSED> F;
  __shared__ Words<4> ring[kRing / 16];
  __shared__ Words<4> vectors[2 * R * F::kStep * sizeof(S) / 16];
  static_assert(kRing >= (int)sizeof(f32) * F::kDown * kPadded && kRing >= (int)sizeof(f32) * R * kThreads, "sums fit");
  const Plan& p = plan_of(args);
  for (u32 tile = blockIdx.x; tile < (u32)p.tiles; tile += gridDim.x) {
    const Range range(p, tile);
    i64 at[2];
    find_offsets<2>(batch_dims(args), (int)p.rank, range.batch, at);
    f32 sums[R][F::kMine] = {};
    sum_part<S, R, TRANSPOSED>(p, range, {p, range, operand<const S>(args, 1) + at[1], (typename F::Word*)ring},
                               {p, range, operand<const S>(args, 0) + at[0], vectors}, sums);
    const f32 sum = combined<F>((f32*)ring, sums);
    __syncthreads();
    const i64 vector = threadIdx.x / kOuts, out = range.first_out + threadIdx.x % kOuts;
    if (vector >= p.vectors || out >= p.outs) continue;
    const i64 result = range.batch * p.vectors * p.outs + vector * p.result_of_vector + out * p.result_of_out;
    const f32 bias = p.biased ? Number<S>::from(operand<const S>(args, 3)[vector * p.bias_of_vector + out * p.bias_of_out]) : 0.f;
    if (p.parts == 1)
      operand<S>(args, 2)[result] = Number<S>::to(p.biased ? sum + bias : sum);
    else
      operand<f32>(args, 2)[range.part * p.batches * p.vectors * p.outs + result] = sum;
  }
}

// Operands parts, result, bias. Numbers: results, parts, columns, 1 with bias.
template <class S>
DEVICE void gemv_sum(const KeelArgs& args) {
  const i64 *n = args.numbers, count = n[0];
  for (i64 i = first_element(); i < count; i += grid_size()) {
    f32 sum = 0;
    for (i64 part = 0; part < n[1]; part++) sum += operand<const f32>(args, 0)[part * count + i];
    if (n[3]) sum += Number<S>::from(operand<const S>(args, 2)[i % n[2]]);
    operand<S>(args, 1)[i] = Number<S>::to(sum);
  }
}

#define VECTORS(S, R)                                        \
  BLOCK_KERNEL(gemv_n##R##_##S) { gemv<S, R, false>(args); } \
  BLOCK_KERNEL(gemv_t##R##_##S) { gemv<S, R, true>(args); }
#define FLOATS(S) \
  VECTORS(S, 1)   \
  VECTORS(S, 2)   \
  VECTORS(S, 4)   \
  VECTORS(S, 8)   \
  KERNEL(gemv_sum_##S) { gemv_sum<S>(args); }
FLOATS(f16)
FLOATS(bf16)
FLOATS(f32)
