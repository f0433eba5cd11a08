// numbers.cuh: the least and the greatest of a computed type, NaN, and the operations whose form depends on the type.
#ifndef KEEL_PLUGINS_CUDA_NUMBERS_CUH
#define KEEL_PLUGINS_CUDA_NUMBERS_CUH

template <class C>
struct Ends {
  static DEVICE C least() { return is_signed<C>() ? (C)((u64)1 << (8 * sizeof(C) - 1)) : (C)0; }
  static DEVICE C greatest() { return (C)~least(); }
};
template <>
struct Ends<bool> {
  static DEVICE bool least() { return false; }
  static DEVICE bool greatest() { return true; }
};
template <>
struct Ends<f32> {
  static DEVICE f32 least() { return __uint_as_float(0xff800000u); }
  static DEVICE f32 greatest() { return -least(); }
};
template <>
struct Ends<f64> {
  static DEVICE f64 least() { return (f64)Ends<f32>::least(); }
  static DEVICE f64 greatest() { return -least(); }
};

DEVICE bool is_nan(f32 x) { return x != x; }
DEVICE bool is_nan(f64 x) { return x != x; }
template <class T>
DEVICE bool is_nan(T) {
  return false;
}

// The type of sums of products: of integers of up to 32 bits one that the processor adds at once; all wrap.
template <int BYTES>
struct SumOfIntegers {
  typedef u32 Type;
};
template <>
struct SumOfIntegers<8> {
  typedef u64 Type;
};
template <class C>
struct SumType : SumOfIntegers<sizeof(C)> {};
template <>
struct SumType<f32> {
  typedef f32 Type;
};
template <>
struct SumType<f64> {
  typedef f64 Type;
};

template <class C>
DEVICE C multiply_add(C a, C b, C c) {
  return keel_add(keel_mul(a, b), c);
}
DEVICE f32 multiply_add(f32 a, f32 b, f32 c) { return fmaf(a, b, c); }
DEVICE f64 multiply_add(f64 a, f64 b, f64 c) { return fma(a, b, c); }

#endif
