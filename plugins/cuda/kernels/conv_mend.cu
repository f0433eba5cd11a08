// conv_mend.cu: corrects convolutions by another library where cells are outside of the right side (conv.cuh). The library
// multiplies zeros by the left side, so that an infinity or NaN there makes NaN of results whose sums do not contain it.
//   conv_check_S  each block finds whether its part of the left side has one
//   conv_mend_S   if a block found one, computes again the results that are NaN
//   conv_again_S  computes again the results that are NaN: few results of long sums
#include "args.h"
#include "scalar.cuh"
#include "common.cuh"
#include "numbers.cuh"
#include "conv.cuh"

// Whether it is so for a thread of the block.
DEVICE bool any_of_block(bool it_is) {
  __shared__ bool each[kThreads];
  const int thread = (int)threadIdx.x;
  each[thread] = it_is;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) each[thread] |= each[thread + half];
    __syncthreads();
  }
  const bool any = each[0];
  __syncthreads();
  return any;
}

// The exponents of the elements in a word, and the lowest bit of each. Only an exponent of ones carries into the sign.
template <class S>
struct Exponents;
#define EXPONENTS(S, all, lowest_bits)          \
  template <>                                   \
  struct Exponents<S> {                         \
    static constexpr u64 mask = all, lowest = lowest_bits; \
  };
EXPONENTS(f16, 0x7c007c007c007c00, 0x0400040004000400)
EXPONENTS(bf16, 0x7f807f807f807f80, 0x0080008000800080)
EXPONENTS(f32, 0x7f8000007f800000, 0x0080000000800000)
EXPONENTS(f64, 0x7ff0000000000000, 0x0010000000000000)
template <class S>
DEVICE bool is_finite(u64 word) {
  typedef Exponents<S> E;
  return (((word & E::mask) + E::lowest) & (E::mask + E::lowest)) == 0;
}

// The left side is aligned. Operand 3: for each of kThreads blocks, whether it found one.
template <class S>
DEVICE void conv_check(const KeelArgs& args) {
  const Plan& p = plan_of(args);
  const i64 count = p.groups * p.rows * p.inner, in_word = (i64)(sizeof(u64) / sizeof(S)), words = count / in_word;
  const u64* word = (const u64*)left_side<S>(args);
  bool found = false;
  for (i64 i = first_element(); i < words; i += grid_size()) found |= !is_finite<S>(word[i]);
  if (const i64 last = words * in_word + first_element(); last < count) {
    const Compute<S> x = Number<S>::from(left_side<S>(args)[last]);
    found |= !(x - x == 0);
  }
  found = any_of_block(found);
  if (threadIdx.x == 0) operand<int>(args, 3)[blockIdx.x] = found;
}

template <class S>
DEVICE void conv_mend(const KeelArgs& args) {
  const Plan& p = plan_of(args);
  if (!any_of_block(operand<const int>(args, 3)[threadIdx.x] != 0)) return;
  for (i64 i = first_element(); i < p.groups * p.rows * p.columns; i += grid_size()) {
    const Result at(p, i);
    S* result = operand<S>(args, 2) + at.place(p);
    if (is_nan(Number<S>::from(*result))) *result = Number<S>::to(direct_sum<S>(args, at, 0, p.inner, 1));
  }
}

template <class S>
DEVICE void conv_again(const KeelArgs& args) {
  __shared__ bool is_bad[kThreads];
  const Plan& p = plan_of(args);
  const i64 count = p.groups * p.rows * p.columns;
  S* results = operand<S>(args, 2);
  for (i64 first = (i64)blockIdx.x * kThreads; first < count; first += grid_size()) {
    const i64 own = first + threadIdx.x;
    const bool bad = own < count && is_nan(Number<S>::from(results[Result(p, own).place(p)]));
    is_bad[threadIdx.x] = bad;
    if (!any_of_block(bad)) continue;
    for (int i = 0; i < kThreads; i++) {
      if (!is_bad[i]) continue;
      const Result at(p, first + i);
      const Compute<S> sum = block_sum<S>(args, at);
      if (threadIdx.x == 0) results[at.place(p)] = Number<S>::to(sum);
    }
    __syncthreads();
  }
}

#define FLOATS(S)                                   \
  BLOCK_KERNEL(conv_check_##S) { conv_check<S>(args); } \
  BLOCK_KERNEL(conv_mend_##S) { conv_mend<S>(args); }   \
  BLOCK_KERNEL(conv_again_##S) { conv_again<S>(args); }
FLOATS(f16)
FLOATS(bf16)
FLOATS(f32)
FLOATS(f64)
