// simt.h: the part of CUDA C++ that plugins/cuda/kernels use, for the host's compiler: thread numbers,
// __syncthreads, shuffles, intrinsics. The fake driver runs the threads of a block one after another, or as
// fibers that take turns at __syncthreads and shuffles. Included before every kernel file.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <deque>
#include <map>
#include <vector>

#include "simt_kernel.h"

#define __device__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __shared__ static  // blocks run one after another
#define UNROLL
#define UNROLL_BY(n)
#define NO_UNROLL
#define OPAQUE(x)

// Set by the fake driver in each library of kernels.
extern "C" __attribute__((visibility("default"), weak)) Simt* keel_simt;
__attribute__((visibility("default"), weak)) Simt* keel_simt = nullptr;
#define threadIdx keel_simt->thread
#define blockIdx keel_simt->block
#define blockDim keel_simt->block_size
#define gridDim keel_simt->grid_size
#define __syncthreads() keel_simt->meet()

// Shuffles in a warp of 32 threads, of values of up to 8 bytes.
template <class T>
inline T simt_exchange(unsigned mask, T value, unsigned from) {
  static_assert(sizeof(T) <= 8);
  unsigned long long bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = keel_simt->exchange(mask, bits, from);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int distance) {
  return simt_exchange(mask, value, (threadIdx.x % 32) ^ static_cast<unsigned>(distance));
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned distance) {
  const unsigned lane = threadIdx.x % 32;
  return simt_exchange(mask, value, lane + distance < 32 ? lane + distance : lane);
}

// A vector that is not aligned: the processor would not mind.
#define CHECK_ALIGNED(address, bytes) \
  if ((reinterpret_cast<uintptr_t>(address)) % (bytes)) keel_simt->complain("a vector is not aligned")

// Of C's functions, which are at hand without std::, a call with a float would choose the one of doubles.
using std::ceil, std::copysign, std::cos, std::erf, std::erfc, std::exp, std::exp2, std::expm1, std::fabs,
    std::floor, std::fma, std::fmax, std::fmin, std::fmod, std::isfinite, std::isinf, std::isnan, std::log,
    std::log1p, std::pow, std::rint, std::sin, std::sqrt, std::tanh, std::trunc;

template <class To, class From>
inline To simt_bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
inline void* __cvta_global_to_generic(size_t address) { return reinterpret_cast<void*>(address); }
inline unsigned __float_as_uint(float x) { return simt_bits<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return simt_bits<float>(x); }
inline long long __double_as_longlong(double x) { return simt_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return simt_bits<double>(x); }
inline unsigned atomicCAS(unsigned* at, unsigned expected, unsigned value) {
  const unsigned old = *at;
  if (old == expected) *at = value;
  return old;
}

// f16 by way of double, which holds 2^24 times any f16 exactly: to nearest, ties to even.
inline float half_value(unsigned short bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double magnitude = exponent == 31 ? (fraction ? NAN : INFINITY)
                           : exponent     ? std::ldexp(fraction + 1024, exponent - 25)
                                          : std::ldexp(fraction, -24);
  return static_cast<float>(bits & 0x8000 ? -magnitude : magnitude);
}
inline unsigned short half_bits(float x) {
  const unsigned sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isnan(x)) return 0x7fff;  // as the instruction does
  const double magnitude = std::fabs(static_cast<double>(x));
  if (magnitude >= 65520) return static_cast<unsigned short>(sign | 0x7c00);
  const int exponent = magnitude < std::ldexp(1, -14) ? -14 : std::ilogb(magnitude);
  const auto units = static_cast<unsigned>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  return static_cast<unsigned short>(sign | (units + (static_cast<unsigned>(exponent + 14) << 10)));
}
inline unsigned brain_pair(float x) {
  const unsigned bits = __float_as_uint(x);
  return std::isnan(x) ? 0x7fff0000 : (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
}

// Copies to shared memory (kernels/copies.cuh) are made as late as the thread's waiting allows, and until
// then the target is NaN. A list for each thread; its last group has not ended.
struct SimtCopy {
  void* to;
  const void* from;  // NULL: zeros
  size_t bytes;
};
using SimtCopies = std::deque<std::vector<SimtCopy>>;
inline SimtCopies& simt_copies() {
  static std::map<unsigned, SimtCopies> of_thread;
  SimtCopies& mine = of_thread[threadIdx.x];
  if (mine.empty()) mine.emplace_back();
  return mine;
}
template <int BYTES>
void copy_async(void* to, const void* from, bool inside) {
  const auto at = reinterpret_cast<uintptr_t>(to) | (inside ? reinterpret_cast<uintptr_t>(from) : 0);
  if (at % BYTES) keel_simt->complain("a copy to shared memory whose addresses are no multiples of its size");
  std::memset(to, 0xff, BYTES);
  simt_copies().back().push_back({to, inside ? from : nullptr, BYTES});
}
inline void end_copies() { simt_copies().emplace_back(); }
template <int N>
void await_copies() {
  for (SimtCopies& mine = simt_copies(); mine.size() > N + 1; mine.pop_front())
    for (const SimtCopy& each : mine.front()) {
      std::memset(each.to, 0, each.bytes);
      if (each.from) std::memcpy(each.to, each.from, each.bytes);
    }
}

#define SIMT_KERNEL(name, blocks, most)                                                            \
  static void name##_kernel(const KeelArgs& args);                                                 \
  static void name##_run(const void* args) { name##_kernel(*static_cast<const KeelArgs*>(args)); } \
  extern "C" __attribute__((visibility("default"))) const SimtKernel simt_keel_##name;             \
  const SimtKernel simt_keel_##name = {name##_run, sizeof(KeelArgs), blocks, most};                \
  static void name##_kernel(const KeelArgs& args)
#define KERNEL(name) SIMT_KERNEL(name, false, kThreads)
#define BLOCK_KERNEL(name) SIMT_KERNEL(name, true, kThreads)
#define WIDE_KERNEL(name) SIMT_KERNEL(name, true, kMostThreads)
inline float exp2_approximate(float x) { return std::exp2(x); }
inline float exp2_of_half(float x) { return std::exp2(x); }
inline float reciprocal_of_half(float x) { return 1 / x; }
inline float sqrt_of_bf16(float x) { return std::sqrt(x); }
// The device's clock.
inline unsigned long long nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<unsigned long long>(now.tv_sec) * 1000000000 +
         static_cast<unsigned long long>(now.tv_nsec);
}
