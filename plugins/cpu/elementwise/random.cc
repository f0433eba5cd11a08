// random.cc: Philox-4x32-10 (Salmon, Moraes, Dror, Shaw 2011), a counter-based generator: a number depends
// only on key and index, so threads can start anywhere.
//
// Counter words are the block number (low, high), 0, 0; key words the operand (low, high). A block gives four
// 32-bit or two 64-bit numbers (low word first); f32, f16 and bf16 use 32 bits per element, f64 uses 64.
// uniform: the top 24, 11, 8 or 53 bits as a fraction. normal: Box-Muller on the two numbers of a pair of
// elements, in double precision.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <type_traits>

#include "plugins/cpu/common.h"
#include "plugins/cpu/elementwise/random_loops.h"
#include "plugins/cpu/parallel/parallel.h"

namespace keel_cpu {
namespace {

// Per dtype: numbers in a block, their bits, and the bits of a uniform fraction.
template <class T>
struct Take {
  static constexpr int64_t kPerBlock = std::is_same_v<T, double> ? 2 : 4;
  static constexpr int kBits = std::is_same_v<T, double> ? 64 : 32;
  static constexpr int kFraction = std::is_same_v<T, double>  ? 53
                                   : std::is_same_v<T, float> ? 24
                                   : std::is_same_v<T, F16>   ? 11
                                                              : 8;
  static uint64_t Number(const uint32_t* w, int64_t i) {
    if constexpr (kBits == 64)
      return static_cast<uint64_t>(w[2 * i + 1]) << 32 | w[2 * i];
    else
      return w[i];
  }
};

// n numbers from their words.
template <class T>
void Uniform(const uint32_t* words, int64_t n, double* v) {
  using F = Take<T>;
  for (int64_t i = 0; i < n; i++)
    v[i] = static_cast<double>(static_cast<int64_t>(F::Number(words, i) >> (F::kBits - F::kFraction))) *
           (1 / static_cast<double>(int64_t{1} << F::kFraction));
}
template <class T>
void Normal(const uint32_t* words, int64_t n, double* v) {
  if constexpr (!std::is_same_v<T, double>) return Random().normal(words, n / 2, v);
  for (int64_t i = 0; i < n; i += 2) {
    const double a = static_cast<double>((Take<T>::Number(words, i) >> 11) + 1) * 0x1p-53;
    const double b = static_cast<double>(Take<T>::Number(words, i + 1) >> 11) * 0x1p-53;
    const double radius = std::sqrt(-2 * std::log(a)), angle = 2 * std::numbers::pi * b;
    v[i] = radius * std::cos(angle);
    v[i + 1] = radius * std::sin(angle);
  }
}

template <class T, void (*kNumbers)(const uint32_t*, int64_t, double*)>
keel_rc RunRandom(const keel_call* call) {
  constexpr int64_t kPer = Take<T>::kPerBlock, kBlocks = 64;  // blocks of a tile
  const uint64_t key = *In<uint64_t>(call, 0);
  const int64_t n = call->count;
  T* y = Out<T>(call, 0);
  ParallelFor(call, (n + kPer - 1) / kPer, 64, [&](int64_t begin, int64_t end) {
    uint32_t words[4 * kBlocks];
    double v[kPer * kBlocks];
    for (int64_t block = begin; block < end; block += kBlocks) {
      const int64_t blocks = std::min(kBlocks, end - block), first = block * kPer;
      Random().philox(key, static_cast<uint64_t>(block), blocks, words);
      kNumbers(words, blocks * kPer, v);
      for (int64_t i = 0, m = std::min(blocks * kPer, n - first); i < m; i++) {
        if constexpr (std::is_same_v<T, double> || std::is_same_v<T, float>)
          y[first + i] = static_cast<T>(v[i]);
        else
          Narrow(ToOdd(v[i]), y[first + i]);
      }
    }
  });
  return Done(call);
}

keel_rc PrepareRandom(const Node& node, keel_launch* launch) {
  const keel_tensor y = node.Out(0);
  const bool normal = node.Word("kind") == "normal";
  launch->run = VisitFloats(keel_dt_of(&y), [&]<class T>() -> Run {
    return normal ? RunRandom<T, Normal<T>> : RunRandom<T, Uniform<T>>;
  });
  return KEEL_OK;
}

constexpr keel_impl kImpls[] = {Impl("random", "loop philox", Prepare<PrepareRandom>, 0)};

}  // namespace

Impls RandomImpls() { return kImpls; }

}  // namespace keel_cpu
