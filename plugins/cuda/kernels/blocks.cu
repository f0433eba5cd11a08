// blocks.cu: products of few vectors with weights quantised in blocks (matmul_blocks), which are read once and never written as
// numbers. A warp computes 4 results of each of R vectors; its threads take words of 16 bytes of a row of w in turn. A word is
// within one block, so that its part of a sum is scale * (sum of q x - zero * sum of x).
#include "args.h"
#include "scalar.cuh"
#include "common.cuh"
#include "copies.cuh"
#include "numbers.cuh"
#include "warp.cuh"

constexpr int kOuts = 4, kWarps = kThreads / 32;

// ops/blocks.cc
struct Plan {
  i64 vectors, outs, inner, words, words_of_block, blocks, has_zero;  // words: of a row of w
};

// N adjacent elements of x from k on, as words; 0 beyond the end.
template <class S, int N>
struct Group {
  static constexpr int kWords = N * sizeof(S) / 4;
  u32 at[kWords];
  DEVICE void load(const S* x, i64 left, bool aligned) {
    constexpr int kPart = kWords < 4 ? kWords : 4;
    UNROLL for (int i = 0; i < kWords; i += kPart) {
      if (aligned && left >= N) {
        const Words<kPart> part = *(const Words<kPart>*)((const u32*)x + i);
        UNROLL for (int j = 0; j < kPart; j++) at[i + j] = part.at[j];
      } else {
        Words<kPart> part = {};
        constexpr int kElements = kPart * 4 / (int)sizeof(S);
        const int first = i * 4 / (int)sizeof(S);
        UNROLL for (int j = 0; j < kElements; j++) set(part.at, j, first + j < left ? x[first + j] : S());
        UNROLL for (int j = 0; j < kPart; j++) at[i + j] = part.at[j];
      }
    }
  }
  static DEVICE void set(u32* words, int i, f32 x) { words[i] = __float_as_uint(x); }
  template <class H>
  static DEVICE void set(u32* words, int i, H x) {
    words[i / 2] |= (u32)x.bits << i % 2 * 16;
  }
};

// Number i of a word, exactly.
template <int BITS>
DEVICE f32 number_of(u32 word, int i) {
  return __uint_as_float(0x4b000000u | (word >> i * BITS & ((1u << BITS) - 1))) - 8388608.f;
}

// A word of w, at any address.
DEVICE Words<4> row_word(const u8* bytes) {
  if ((u64)bytes % 16 == 0) return *(const Words<4>*)bytes;
  Words<4> all = {};
  UNROLL for (int i = 0; i < 4; i++)
    NO_UNROLL for (int j = 0; j < 4; j++) all.at[i] |= (u32)bytes[i * 4 + j] << 8 * j;
  return all;
}

// Operands x, w, scale, result, zero.
template <class S, int BITS, int R>
DEVICE void blocks(const KeelArgs& args) {
  constexpr int kNumbers = 32 / BITS;  // of 4 bytes
  const Plan& p = *(const Plan*)args.numbers;
  const int lane = lane_of_thread(), warp = (int)threadIdx.x / 32;
  const i64 strips = (p.outs + kWarps * kOuts - 1) / (kWarps * kOuts), groups = (p.vectors + R - 1) / R;
  for (i64 tile = blockIdx.x; tile < strips * groups; tile += gridDim.x) {
    const i64 out0 = (tile % strips * kWarps + warp) * kOuts, vector0 = tile / strips * R;
    const S *x = operand<const S>(args, 0) + vector0 * p.inner, *scale = operand<const S>(args, 2), *zero = operand<const S>(args, 4);
    const u8* w = operand<const u8>(args, 1) + out0 * p.words * 16;
    const bool x_aligned = ((u64)x | (u64)p.inner * sizeof(S)) % 16 == 0;
    f32 sums[kOuts][R] = {};
    Words<4> numbers[kOuts], next[kOuts];
    const auto load = [&](i64 word) {
      UNROLL for (int o = 0; o < kOuts; o++) next[o] = out0 + o < p.outs && word < p.words ? row_word(w + (o * p.words + word) * 16) : Words<4>{};
    };
    load(lane);
    for (i64 word = lane; word < p.words && word * 4 * kNumbers < p.inner; word += 32) {
      UNROLL for (int o = 0; o < kOuts; o++) numbers[o] = next[o];
      load(word + 32);
      f32 products[kOuts][R] = {}, total[R] = {};
      UNROLL for (int i = 0; i < 4; i++) {
        Group<S, kNumbers> mine[R];
        const i64 k = (word * 4 + i) * kNumbers;
        UNROLL for (int r = 0; r < R; r++) {
          mine[r].load(x + r * p.inner + k, vector0 + r < p.vectors ? p.inner - k : 0, x_aligned);
          UNROLL for (int j = 0; j < kNumbers; j++) total[r] += Packed<S>::at(mine[r].at, j);
        }
        UNROLL for (int o = 0; o < kOuts; o++)
          UNROLL for (int j = 0; j < kNumbers; j++) {
            const f32 q = number_of<BITS>(numbers[o].at[i], j);
            UNROLL for (int r = 0; r < R; r++) products[o][r] = multiply_add(q, Packed<S>::at(mine[r].at, j), products[o][r]);
          }
      }
      UNROLL for (int o = 0; o < kOuts; o++) {
        if (out0 + o >= p.outs) continue;
        const i64 block = (out0 + o) * p.blocks + word / p.words_of_block;
        const f32 s = Number<S>::from(scale[block]), z = p.has_zero ? Number<S>::from(zero[block]) : (f32)(1 << (BITS - 1));
        UNROLL for (int r = 0; r < R; r++) sums[o][r] = multiply_add(s, products[o][r] - z * total[r], sums[o][r]);
      }
    }
    UNROLL for (int o = 0; o < kOuts; o++)
      UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int mask = 16; mask > 0; mask /= 2) sums[o][r] += of_lane_xor(sums[o][r], mask);
        if (lane == 0 && out0 + o < p.outs && vector0 + r < p.vectors)
          operand<S>(args, 3)[(vector0 + r) * p.outs + out0 + o] = Number<S>::to(sums[o][r]);
      }
  }
}

#define VECTORS(S, BITS)                                              \
  BLOCK_KERNEL(blocks_##BITS##_1_##S) { blocks<S, BITS, 1>(args); } \
  BLOCK_KERNEL(blocks_##BITS##_2_##S) { blocks<S, BITS, 2>(args); }
#define FLOATS(S) \
  VECTORS(S, 2)   \
  VECTORS(S, 4)   \
  VECTORS(S, 8)
FLOATS(f16)
FLOATS(bf16)
FLOATS(f32)
