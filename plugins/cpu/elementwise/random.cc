// random.cc: Philox-4x32-10 (Salmon, Moraes, Dror, Shaw 2011), a counter-based generator: a number depends
// only on key and index, so threads can start anywhere.
//
// Counter words are the block number (low, high), 0, 0; key words the operand (low, high). A block gives four
// 32-bit or two 64-bit numbers (low word first); f32, f16 and bf16 use 32 bits per element, f64 uses 64.
// uniform: the top 24, 11, 8 or 53 bits as a fraction. normal: Box-Muller on the two numbers of a pair of
// elements, in double precision.
#include <cmath>
#include <cstring>
#include <numbers>

#include "plugins/cpu/common.h"
#include "plugins/cpu/parallel/parallel.h"

namespace keel_cpu {
namespace {

struct Words {
  uint32_t w[4];
};

Words Philox(uint64_t key, uint64_t block) {
  uint32_t a = static_cast<uint32_t>(block), b = static_cast<uint32_t>(block >> 32), c = 0, d = 0;
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; round++) {
    const uint64_t left = uint64_t{0xD2511F53} * a, right = uint64_t{0xCD9E8D57} * c;
    a = static_cast<uint32_t>(right >> 32) ^ b ^ k0;
    b = static_cast<uint32_t>(right);
    c = static_cast<uint32_t>(left >> 32) ^ d ^ k1;
    d = static_cast<uint32_t>(left);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {{a, b, c, d}};
}

// Per dtype: numbers in a block, their bits, and the bits of a uniform fraction.
template <class T>
struct Take {
  static constexpr int64_t kPerBlock = std::is_same_v<T, double> ? 2 : 4;
  static constexpr int kBits = std::is_same_v<T, double> ? 64 : 32;
  static constexpr int kNormalBits = std::is_same_v<T, double> ? 53 : 32;
  static constexpr int kFraction = std::is_same_v<T, double>  ? 53
                                   : std::is_same_v<T, float> ? 24
                                   : std::is_same_v<T, F16>   ? 11
                                                              : 8;
  static uint64_t Number(const Words& w, int64_t i) {
    if constexpr (kBits == 64)
      return static_cast<uint64_t>(w.w[2 * i + 1]) << 32 | w.w[2 * i];
    else
      return w.w[i];
  }
};

template <class T>
void UniformBlock(const Words& w, double* v) {
  using F = Take<T>;
  for (int64_t i = 0; i < F::kPerBlock; i++)
    v[i] = static_cast<double>(F::Number(w, i) >> (F::kBits - F::kFraction)) * std::exp2(-F::kFraction);
}
template <class T>
void NormalBlock(const Words& w, double* v) {
  using F = Take<T>;
  const double unit = std::exp2(-F::kNormalBits);
  for (int64_t i = 0; i < F::kPerBlock; i += 2) {
    const uint64_t a = F::Number(w, i) >> (F::kBits - F::kNormalBits);
    const uint64_t b = F::Number(w, i + 1) >> (F::kBits - F::kNormalBits);
    const double radius = std::sqrt(-2 * std::log(static_cast<double>(a + 1) * unit));
    const double angle = 2 * std::numbers::pi * (static_cast<double>(b) * unit);
    v[i] = radius * std::cos(angle);
    v[i + 1] = radius * std::sin(angle);
  }
}

template <class T, void (*kBlock)(const Words&, double*)>
keel_rc RunRandom(const keel_call* call) {
  constexpr int64_t kPer = Take<T>::kPerBlock;
  const uint64_t key = *In<uint64_t>(call, 0);
  const int64_t n = call->count;
  T* y = Out<T>(call, 0);
  ParallelFor(call, (n + kPer - 1) / kPer, 64, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; block++) {
      double v[4];
      kBlock(Philox(key, static_cast<uint64_t>(block)), v);
      for (int64_t i = 0, m = std::min(kPer, n - block * kPer); i < m; i++) {
        if constexpr (std::is_same_v<T, double>)
          y[block * kPer + i] = v[i];
        else if constexpr (std::is_same_v<T, float>)
          y[block * kPer + i] = static_cast<float>(v[i]);
        else
          Narrow(ToOdd(v[i]), y[block * kPer + i]);
      }
    }
  });
  return Done(call);
}

keel_rc PrepareRandom(const Node& node, keel_launch* launch) {
  const keel_tensor y = node.Out(0);
  const bool normal = node.Word("kind") == "normal";
  launch->run = VisitFloats(keel_dt_of(&y), [&]<class T>() -> Run {
    return normal ? RunRandom<T, NormalBlock<T>> : RunRandom<T, UniformBlock<T>>;
  });
  return KEEL_OK;
}

constexpr keel_impl kImpls[] = {Impl("random", "loop philox", Prepare<PrepareRandom>, 0)};

}  // namespace

Impls RandomImpls() { return kImpls; }

}  // namespace keel_cpu
