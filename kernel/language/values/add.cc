// add.cc: sums of the elements of two arrays, for variables on the host.
#include "kernel/language/values/variable.h"

#include <bit>
#include <type_traits>

namespace keel {
namespace {

// f16 and bf16 as bits: not every compiler has types for them.
struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};

float Widen(BFloat v) { return std::bit_cast<float>(static_cast<uint32_t>(v.bits) << 16); }

float Widen(Half v) {
  uint32_t sign = static_cast<uint32_t>(v.bits & 0x8000) << 16, rest = v.bits & 0x7fff;
  if (rest >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000 | (rest & 0x3ff) << 13);
  float size =
      rest < 0x400 ? static_cast<float>(rest) * 0x1p-24f : std::bit_cast<float>((rest << 13) + (112u << 23));
  return sign ? -size : size;
}

// Rounds to nearest, ties to even.
void Narrow(float v, BFloat* to) {
  auto bits = std::bit_cast<uint32_t>(v);
  to->bits = static_cast<uint16_t>(v != v ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void Narrow(float v, Half* to) {
  auto bits = std::bit_cast<uint32_t>(v);
  uint32_t sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
  auto size = std::bit_cast<float>(rest);
  uint32_t made;
  if (v != v)
    made = 0x7e00 | (rest >> 13 & 0x3ff);
  else if (size >= 65520)
    made = 0x7c00;
  else if (size < 0x1p-14f)  // floats in [0.5, 1) are 2^-24 apart, like the subnormal halves
    made = std::bit_cast<uint32_t>(size + 0.5f) - std::bit_cast<uint32_t>(0.5f);
  else
    made = (rest - (112u << 23) + 0xfff + (rest >> 13 & 1)) >> 13;
  to->bits = static_cast<uint16_t>(sign | made);
}

// Integers wrap. f16 and bf16 are added in f32, which is exact up to the final rounding.
template <bool subtract, typename T>
T Combine(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<T>(subtract ? x - y : x + y);
  } else if constexpr (std::is_class_v<T>) {
    T sum;
    Narrow(subtract ? Widen(a) - Widen(b) : Widen(a) + Widen(b), &sum);
    return sum;
  } else {
    return subtract ? a - b : a + b;
  }
}

template <bool subtract, typename T>
void Rows(const T* a, const T* b, T* to, int64_t count) {
  for (int64_t i = 0; i < count; i++) to[i] = Combine<subtract>(a[i], b[i]);
}

template <typename T>
void AddRow(bool subtract, const void* a, const void* b, void* to, int64_t count) {
  auto *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  (subtract ? Rows<true, T> : Rows<false, T>)(x, y, static_cast<T*>(to), count);
}

using AddFn = void (*)(bool, const void*, const void*, void*, int64_t);
constexpr AddFn kAdds[] = {nullptr,          nullptr,          AddRow<int8_t>,  AddRow<int16_t>,
                           AddRow<int32_t>,  AddRow<int64_t>,  AddRow<uint8_t>, AddRow<uint16_t>,
                           AddRow<uint32_t>, AddRow<uint64_t>, AddRow<Half>,    AddRow<BFloat>,
                           AddRow<float>,    AddRow<double>};
static_assert(std::size(kAdds) == static_cast<size_t>(DType::kF64) + 1);

}  // namespace

void AddElements(DType dtype, bool subtract, const void* a, const void* b, void* to, int64_t count) {
  AddFn add = IsStorage(dtype) ? nullptr : kAdds[static_cast<size_t>(dtype)];
  if (add) add(subtract, a, b, to, count);
}

}  // namespace keel
