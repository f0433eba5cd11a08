// random.cc: Philox-4x32-10, a counter-based generator, so that an element depends on key and place only.
//
// The layout, which every device must match:
//   key words      low and high 32 bits of the operand `key`
//   counter words  low and high 32 bits of the block number, 0, 0
//   a block gives words w0 w1 w2 w3; 64-bit numbers are q0 = w1:w0 and q1 = w3:w2
//   f32, f16, bf16 element e: word e % 4 of block e / 4;  f64 element e: q(e % 2) of block e / 2
//   uniform        the top 24 (f32), 11 (f16), 8 (bf16) or 53 (f64) bits, times 2^-24, 2^-11, 2^-8, 2^-53
//   normal         Box-Muller on pairs of elements 2j and 2j + 1, from their two numbers a and b:
//                  r = sqrt(-2 log u), u = (a + 1) * 2^-32, t = 2 pi b * 2^-32 (f64: the top 53 bits
//                  and 2^-53); elements r cos t and r sin t, computed in double, then rounded
#include <array>
#include <numbers>

#include "call.h"
#include "families.h"

namespace reference {
namespace {

using Block = std::array<uint32_t, 4>;

// Constants and rounds of Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3" (2011).
Block philox(uint64_t key, uint64_t number) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  Block c = {static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32), 0, 0};
  for (int round = 0; round < 10; ++round) {
    const uint64_t p = uint64_t{0xD2511F53} * c[0], q = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(q >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(q),
         static_cast<uint32_t>(p >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

template <class T>
constexpr bool kLong = std::same_as<T, double>;

// The bits of element e, and their number.
template <class T>
uint64_t bits_of(uint64_t key, uint64_t e) {
  if constexpr (kLong<T>) {
    const Block w = philox(key, e / 2);
    return uint64_t{w[e % 2 * 2 + 1]} << 32 | w[e % 2 * 2];
  } else {
    return philox(key, e / 4)[e % 4];
  }
}
template <class T>
constexpr int kUniformBits = kLong<T>                 ? 53
                             : std::same_as<T, float> ? 24
                             : std::same_as<T, Half>  ? 11
                                                      : 8;

template <class T>
double uniform(uint64_t key, uint64_t e) {
  constexpr int kDrop = (kLong<T> ? 64 : 32) - kUniformBits<T>;
  return std::ldexp(static_cast<double>(bits_of<T>(key, e) >> kDrop), -kUniformBits<T>);
}
template <class T>
double normal(uint64_t key, uint64_t e) {
  constexpr int kDrop = kLong<T> ? 11 : 0, kBits = kLong<T> ? 53 : 32;
  const uint64_t a = bits_of<T>(key, e - e % 2) >> kDrop, b = bits_of<T>(key, e - e % 2 + 1) >> kDrop;
  const double u = std::ldexp(static_cast<double>(a + 1), -kBits);  // in (0, 1]
  const double t = 2 * std::numbers::pi * std::ldexp(static_cast<double>(b), -kBits);
  return std::sqrt(-2 * std::log(u)) * (e % 2 == 0 ? std::cos(t) : std::sin(t));
}

struct RandomState {
  bool is_normal;
  void read(Attributes& a) { is_normal = a.text("kind") == "normal"; }
};
keel_rc random(const RandomState& s, const keel_call& c) {
  return typed<Floats>(c, keel_dt_of(c.out[0]), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const uint64_t key = *in<uint64_t>(c, 0), n = static_cast<uint64_t>(keel_count(c.out[0]));
    T* y = out<T>(c);
    for (uint64_t e = 0; e < n; ++e) y[e] = make<T>(s.is_normal ? normal<T>(key, e) : uniform<T>(key, e));
    return KEEL_OK;
  });
}

constexpr keel_impl kImpls[] = {row<RandomState, random>(REFERENCE_OP("random"), KEEL_IMPL_ANY_DIMS)};

}  // namespace

std::span<const keel_impl> random_impls() { return kImpls; }

}  // namespace reference
