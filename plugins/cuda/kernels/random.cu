// random.cu: Philox-4x32-10 numbers; the layout is that of plugins/reference/random.cc.
#include "args.h"
#include "scalar.cuh"
#include "common.cuh"

// Constants and rounds of Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3" (2011).
DEVICE void philox(u64 key, u64 number, u32* c) {
  u32 k0 = (u32)key, k1 = (u32)(key >> 32);
  c[0] = (u32)number, c[1] = (u32)(number >> 32), c[2] = 0, c[3] = 0;
  for (int round = 0; round < 10; round++, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
    const u64 p = (u64)0xD2511F53 * c[0], q = (u64)0xCD9E8D57 * c[2];
    c[0] = (u32)(q >> 32) ^ c[1] ^ k0, c[1] = (u32)q;
    c[2] = (u32)(p >> 32) ^ c[3] ^ k1, c[3] = (u32)p;
  }
}
template <class S>
struct Random {  // f32, f16, bf16: one word
  static DEVICE u64 bits(u64 key, u64 e) {
    u32 w[4];
    philox(key, e / 4, w);
    return w[e % 4];
  }
  static constexpr int kWidth = 32, kNormal = 32;
};
template <>
struct Random<f64> {
  static DEVICE u64 bits(u64 key, u64 e) {
    u32 w[4];
    philox(key, e / 2, w);
    return (u64)w[e % 2 * 2 + 1] << 32 | w[e % 2 * 2];
  }
  static constexpr int kWidth = 64, kNormal = 53;
};
// 2^-bits
DEVICE f64 unit(int bits) { return __longlong_as_double((i64)(1023 - bits) << 52); }

template <class S>
DEVICE f64 uniform(u64 key, u64 e, int bits) {
  return (f64)(Random<S>::bits(key, e) >> (Random<S>::kWidth - bits)) * unit(bits);
}
template <class S>
DEVICE f64 normal(u64 key, u64 e) {
  typedef Random<S> R;
  const int drop = R::kWidth - R::kNormal;
  const u64 a = R::bits(key, e - e % 2) >> drop, b = R::bits(key, e - e % 2 + 1) >> drop;
  const f64 u = (f64)(a + 1) * unit(R::kNormal), t = 2 * 3.14159265358979323846 * ((f64)b * unit(R::kNormal));
  return sqrt(-2 * log(u)) * (e % 2 == 0 ? cos(t) : sin(t));
}

// Operand key, result. Numbers: count, bits of uniform numbers (0: normal).
template <class S>
DEVICE void fill_random(const KeelArgs& args) {
  const u64 key = *operand<const u64>(args, 0);
  const int bits = (int)args.numbers[1];
  for (i64 i = first_element(); i < args.numbers[0]; i += grid_size()) {
    const f64 x = bits ? uniform<S>(key, (u64)i, bits) : normal<S>(key, (u64)i);
    operand<S>(args, 1)[i] = Number<S>::to(Cast<S>::of(x));
  }
}
KERNEL(random_f16) { fill_random<f16>(args); }
KERNEL(random_bf16) { fill_random<bf16>(args); }
KERNEL(random_f32) { fill_random<f32>(args); }
KERNEL(random_f64) { fill_random<f64>(args); }
