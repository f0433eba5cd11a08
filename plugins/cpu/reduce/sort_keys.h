// sort_keys.h: the order of elements, and keys: unsigned numbers of their size that have this order. -0
// equals 0.
#pragma once

#include <bit>
#include <tuple>
#include <type_traits>

#include "plugins/cpu/common.h"

namespace keel_cpu {

// Whether a comes before b: NaN first, then the greatest (or least).
template <bool kMax, class T>
bool Before(T a, T b) {
  if (a != a || b != b) return a != a && b == b;
  return kMax ? b < a : a < b;
}
// Whether an element of x is NaN, before `limit`, or equal to it if equal ones count.
template <bool kMax, bool kEqual, class T>
bool AnyBefore(const T* x, int64_t n, Compute<T> limit) {
  int any = 0;
  for (int64_t i = 0; i < n; i++) {
    const Compute<T> now = Widen(x[i]);
    any |= kEqual ? !(kMax ? now < limit : now > limit) : !(kMax ? now <= limit : now >= limit);
  }
  return any != 0;
}

template <size_t kSize>
using Unsigned =
    std::tuple_element_t<std::bit_width(kSize) - 1, std::tuple<uint8_t, uint16_t, uint32_t, uint64_t>>;

// NaN comes first but for kUpwards, where it comes last.
enum class Order { kGreatest, kLeast, kUpwards };

// No number has this key.
template <Order kOrder, class U>
inline constexpr U kNanKey = kOrder == Order::kUpwards ? static_cast<U>(~U{0}) : U{0};

template <Order kOrder, class T>
Unsigned<sizeof(T)> KeyOf(T x) {
  using U = Unsigned<sizeof(T)>;
  constexpr U kSign = U{1} << (8 * sizeof(T) - 1), kAll = static_cast<U>(~U{0});
  auto key = std::bit_cast<U>(x);
  if constexpr (!std::is_integral_v<Compute<T>>) {  // without branches, for the vectoriser
    key = key == kSign ? 0 : key;                   // -0 equals 0
    key = static_cast<U>(key ^ (key & kSign ? kAll : kSign));
    if constexpr (kOrder == Order::kGreatest) key = static_cast<U>(~key);
    return Widen(x) != Widen(x) ? kNanKey<kOrder, U> : key;
  } else {
    if constexpr (std::is_signed_v<T>) key ^= kSign;
    return kOrder == Order::kGreatest ? static_cast<U>(~key) : key;
  }
}

// The element with this key. NaN and zeros have lost bits: false.
template <Order kOrder, class T, class U>
bool FromKey(U key, T* x) {
  constexpr U kSign = U{1} << (8 * sizeof(T) - 1);
  const U order = kOrder == Order::kGreatest ? static_cast<U>(~key) : key;
  if constexpr (!std::is_integral_v<Compute<T>>) {
    *x = std::bit_cast<T>(static_cast<U>(order & kSign ? order ^ kSign : ~order));
    return key != kNanKey<kOrder, U> && order != kSign;
  } else {
    *x = static_cast<T>(std::is_signed_v<T> ? order ^ kSign : order);
    return true;
  }
}

}  // namespace keel_cpu
