// scalar.cuh: elements of all dtypes, and the functions that the expressions of sdk/plugin/scalar_ops.h name.
// Without headers, for run-time compilation. f16 and bf16 are computed in f32 and rounded after each op.
#ifndef KEEL_PLUGINS_CUDA_SCALAR_CUH
#define KEEL_PLUGINS_CUDA_SCALAR_CUH
#define DEVICE __device__ __forceinline__

typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
struct f16 {
  u16 bits;
};
struct bf16 {
  u16 bits;
};
struct boolean {
  u8 bits;
};

// ---- bits
DEVICE bool is_negative(f32 x) { return (i32)__float_as_uint(x) < 0; }
DEVICE bool is_negative(f64 x) { return __double_as_longlong(x) < 0; }
// To f32, rounded to odd: a later rounding to f16 or bf16 then is the only one.
DEVICE f32 odd_f32(f64 x) {
  const f32 near = (f32)x;
  if (!((f64)near != x) || x != x) return near;
  u32 bits = __float_as_uint(near);
  const bool beyond = is_negative(x) ? (f64)near < x : (f64)near > x;
  return __uint_as_float((bits - beyond) | 1);
}
DEVICE f64 odd_f64(u64 x) { return x >> 53 ? (f64)(x >> 11 | ((x & 2047) != 0)) * 2048 : (f64)x; }
DEVICE f64 odd_f64(i64 x) { return x < 0 ? -odd_f64(0 - (u64)x) : odd_f64((u64)x); }

#if defined(__CUDACC__)
// 2^x, with an error of 2 ulps; results below the normal numbers are 0.
DEVICE f32 exp2_approximate(f32 x) {
  f32 y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#endif

// ---- f16 and bf16; any NaN becomes 0x7fff
#if defined(__CUDACC__)
DEVICE f32 half_value(u16 bits) {
  f32 x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
DEVICE u16 half_bits(f32 x) {
  u16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
// Of a pair, for the instruction for one is several times slower: x becomes the upper half, 0 the other one.
DEVICE u32 brain_pair(f32 x) {
  u32 bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(x), "f"(0.0f));
  return bits;
}
#endif

// ---- Compute<S>: what elements of S are computed in; from() and to<S>() convert.
template <class S>
struct Number {
  typedef S Compute;
  static DEVICE S from(S x) { return x; }
  static DEVICE S to(S x) { return x; }
};
template <>
struct Number<f16> {
  typedef f32 Compute;
  static DEVICE f32 from(f16 x) { return half_value(x.bits); }
  static DEVICE f16 to(f32 x) { return {half_bits(x)}; }
};
template <>
struct Number<bf16> {
  typedef f32 Compute;
  static DEVICE f32 from(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
  static DEVICE bf16 to(f32 x) { return {(u16)(brain_pair(x) >> 16)}; }
};
template <>
struct Number<boolean> {
  typedef bool Compute;
  static DEVICE bool from(boolean x) { return x.bits != 0; }
  static DEVICE boolean to(bool x) { return {(u8)x}; }
};
template <class S>
using Compute = typename Number<S>::Compute;
// The result of an op as an element of S would hold it, and that element; integers wrap.
template <class S>
struct Rounded {
  static DEVICE Compute<S> of(Compute<S> x) { return Number<S>::from(Number<S>::to(x)); }
  static DEVICE S to(Compute<S> x) { return Number<S>::to(x); }
};
template <>
struct Rounded<bf16> {
  static DEVICE f32 of(f32 x) { return __uint_as_float(brain_pair(x)); }
  static DEVICE bf16 to(f32 x) { return {(u16)(__float_as_uint(x) >> 16)}; }
};
template <class S, class X>
DEVICE Compute<S> rounded(X x) {
  return Rounded<S>::of((Compute<S>)x);
}

// ---- integers: wrap; division truncates, and by zero fails
template <class T>
DEVICE bool is_signed() {
  return (T)-1 < (T)0;
}
template <class T>
DEVICE T keel_add(T a, T b) {
  return (T)((u64)a + (u64)b);
}
template <class T>
DEVICE T keel_sub(T a, T b) {
  return (T)((u64)a - (u64)b);
}
template <class T>
DEVICE T keel_mul(T a, T b) {
  return (T)((u64)a * (u64)b);
}
template <class T>
DEVICE T keel_neg(T a) {
  return (T)(0 - (u64)a);
}
template <class T>
DEVICE T keel_abs(T a) {
  return a < 0 ? keel_neg(a) : a;
}
template <class T>
DEVICE T divided(T a, T b, bool* failed) {
  if (b == 0) return *failed = true, (T)0;
  return is_signed<T>() && b == (T)-1 ? keel_neg(a) : (T)(a / b);
}
template <class T>
DEVICE T remainder_of(T a, T b, bool* failed) {
  if (b == 0) return *failed = true, (T)0;
  return is_signed<T>() && b == (T)-1 ? (T)0 : (T)(a % b);
}
template <class T>
DEVICE T modulo(T a, T b, bool* failed) {
  const T r = remainder_of(a, b, failed);
  return r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r;
}
template <class T>
DEVICE T power(T a, T b, bool* failed) {
  if (b < 0) {
    if (a == 0) *failed = true;
    if (a == 1) return 1;
    return a == (T)-1 ? (T)(b % 2 == 0 ? 1 : -1) : (T)0;
  }
  u64 result = 1, square = (u64)a;
  for (u64 rest = (u64)b; rest; rest /= 2, square *= square)
    if (rest & 1) result *= square;
  return (T)result;
}
template <class T>
DEVICE T keel_shift_left(T a, T b) {
  return b < (T)(8 * sizeof(T)) ? (T)((u64)a << b) : (T)0;
}
template <class T>
DEVICE T keel_shift_right(T a, T b) {
  return b < (T)(8 * sizeof(T)) ? (T)(a >> b) : (T)0;
}
#define keel_div(a, b) divided(a, b, &failed)
#define keel_rem(a, b) remainder_of(a, b, &failed)
#define keel_mod(a, b) modulo(a, b, &failed)
#define keel_pow(a, b) power(a, b, &failed)

// ---- floats
template <class T>
DEVICE T float_modulo(T a, T b) {
  T r = fmod(a, b);
  if (r == 0) return copysign((T)0, b);
  return (r < 0) != (b < 0) ? r + b : r;
}
DEVICE f32 modulo(f32 a, f32 b, bool*) { return float_modulo(a, b); }
DEVICE f64 modulo(f64 a, f64 b, bool*) { return float_modulo(a, b); }
// NaN wins, and 0 is greater than -0.
template <class T>
DEVICE T keel_maximum(T a, T b) {
  if (a != a || b != b) return a != a ? a : b;
  return a == b ? (is_negative(a) ? b : a) : a < b ? b : a;
}
template <class T>
DEVICE T keel_minimum(T a, T b) {
  if (a != a || b != b) return a != a ? a : b;
  return a == b ? (is_negative(a) ? a : b) : b < a ? b : a;
}
#if defined(__CUDACC__)
DEVICE f32 keel_maximum(f32 a, f32 b) {
  f32 y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
DEVICE f32 keel_minimum(f32 a, f32 b) {
  f32 y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
#endif
// ---- functions of f16 and bf16, in f32. Errors of the instructions are less than 2^-17 of the result, half a unit in the last
// place of f16 is 2^-12; functions that are exact to f32 take several times as many instructions. (tests/cuda/fake/simt.h)
#if defined(__CUDACC__)
#define APPROXIMATE(name, instruction)                       \
  DEVICE f32 name(f32 x) {                                   \
    f32 y;                                                   \
    asm(instruction " %0, %1;" : "=f"(y) : "f"(x));          \
    return y;                                                \
  }
APPROXIMATE(exp2_of_half, "ex2.approx.f32")
APPROXIMATE(reciprocal_of_half, "rcp.approx.ftz.f32")
APPROXIMATE(sqrt_of_bf16, "sqrt.approx.f32")  // no root of a bf16 is nearer than 2^-19 to the middle of two
#undef APPROXIMATE
#endif
DEVICE f32 exp_of_half(f32 x) { return exp2_of_half(x * 1.44269504f); }
// Near 0, where 1 - 2 / (1 + e) cancels, by the first terms of the series.
DEVICE f32 tanh_of_half(f32 x) {
  const f32 size = fabs(x), far = 1 - 2 * reciprocal_of_half(1 + exp2_of_half(size * 2.88539008f));
  return size < 0.0625f ? x * fma(x * x, -0.333333333f, 1.0f) : copysign(far, x);
}

// x times the normal distribution function of x, erfc(-x / sqrt(2)) / 2. erfc far above 0 multiplies the relative error of
// its argument h by 2 h^2, so what the rounding of h lost is corrected to first order. root: sqrt(1 / 2) in two parts.
template <class T>
DEVICE T gelu_by_erfc(T x, T root, T rest) {
  const T h = -x * root, lost = fma(-x, root, -h) - x * rest, y = x * erfc(h) / 2;
  return h > 0 ? y * (1 - 2 * h * lost) : y;
}
DEVICE f32 keel_gelu(f32 x) { return gelu_by_erfc(x, 0.707106769084930420f, 1.21016171e-8f); }
DEVICE f64 keel_gelu(f64 x) { return gelu_by_erfc(x, 0.70710678118654757, -4.8336466567264567e-17); }

template <class T>
DEVICE T keel_logistic(T x) {
  const T e = exp(-fabs(x)), y = 1 / (1 + e);
  return x < 0 ? e * y : y;
}
// x / (1 + exp(-z)) for z of the sign of x. Far below 0 exp(z) is denormal where the result is not: there it is exp(z + 32) times
// a constant, and the sum is exact.
template <class T>
DEVICE T keel_times_logistic(T x, T z) {
  const T y = x / (1 + exp(-fabs(z)));
  if (z >= 0 || z != z) return y;
  const bool far = z < (sizeof(T) == 4 ? -60 : -600);
  const T product = y * exp(far ? z + 32 : z);
  return far ? product * (T)1.2664165549094176e-14 : product;
}

// ---- cast: floats to integers truncate and saturate, NaN becomes 0
template <class To, class X>
DEVICE To saturated(X x) {
  const int digits = 8 * (int)sizeof(To) - (is_signed<To>() ? 1 : 0);
  const X end = (X)((u64)1 << (digits - 1)) * 2;
  if (x != x) return 0;
  if (x <= (is_signed<To>() ? -end : (X)0)) return is_signed<To>() ? (To)((u64)1 << digits) : (To)0;
  return x >= end ? (To)(~(u64)0 >> (64 - digits)) : (To)x;
}
template <class To>
struct Cast {
  template <class X>
  static DEVICE To of(X x) {
    return (To)x;
  }
  static DEVICE To of(f32 x) { return saturated<To>(x); }
  static DEVICE To of(f64 x) { return saturated<To>(x); }
};
template <>
struct Cast<boolean> {
  template <class X>
  static DEVICE bool of(X x) {
    return x != 0;
  }
};
template <>
struct Cast<f64> {
  template <class X>
  static DEVICE f64 of(X x) {
    return (f64)x;
  }
};
template <>
struct Cast<f32> {
  template <class X>
  static DEVICE f32 of(X x) {
    return (f32)x;
  }
};
struct CastSmall {  // rounded once, by the caller
  static DEVICE f32 of(f32 x) { return x; }
  static DEVICE f32 of(f64 x) { return odd_f32(x); }
  static DEVICE f32 of(bool x) { return x; }
  static DEVICE f32 of(i8 x) { return x; }
  static DEVICE f32 of(u8 x) { return x; }
  static DEVICE f32 of(i16 x) { return x; }
  static DEVICE f32 of(u16 x) { return x; }
  static DEVICE f32 of(i64 x) { return odd_f32(odd_f64(x)); }
  static DEVICE f32 of(u64 x) { return odd_f32(odd_f64(x)); }
  template <class X>
  static DEVICE f32 of(X x) {
    return odd_f32((f64)x);
  }
};
template <>
struct Cast<f16> : CastSmall {};
template <>
struct Cast<bf16> : CastSmall {};

#endif
