// combine.cuh: what the kinds of reductions do with two elements.
#ifndef KEEL_PLUGINS_CUDA_COMBINE_CUH
#define KEEL_PLUGINS_CUDA_COMBINE_CUH

enum Reduction { kSum, kProduct, kMax, kMin, kMean };  // ops/reduce.cc

// Integers and bool; floats below.
template <class C>
struct Combine {
  static DEVICE C sum(C a, C b) { return keel_add(a, b); }
  static DEVICE C product(C a, C b) { return keel_mul(a, b); }
  static DEVICE C max(C a, C b) { return a < b ? b : a; }
  static DEVICE C min(C a, C b) { return b < a ? b : a; }
  static DEVICE C mean(C s, i64) { return s; }  // see WholeMean
};
template <class C>
struct CombineFloats {
  static DEVICE C sum(C a, C b) { return a + b; }
  static DEVICE C product(C a, C b) { return a * b; }
  static DEVICE C max(C a, C b) { return keel_maximum(a, b); }
  static DEVICE C min(C a, C b) { return keel_minimum(a, b); }
  static DEVICE C mean(C s, i64 n) { return s / (C)n; }
};
template <>
struct Combine<f32> : CombineFloats<f32> {};
template <>
struct Combine<f64> : CombineFloats<f64> {};

#endif
