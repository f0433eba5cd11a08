// common.cuh: what kernels share: operands by number, grid loops, strides, faults. Without headers, for
// run-time compilation; args.h and scalar.cuh come before it.
#ifndef KEEL_PLUGINS_CUDA_COMMON_CUH
#define KEEL_PLUGINS_CUDA_COMMON_CUH

// A kernel, which the driver knows as keel_NAME. BLOCK_KERNEL: its threads meet at __syncthreads or in shuffles.
// WIDE_KERNEL: and its blocks have up to kMostThreads. (tests/cuda/fake/simt.h defines them for the
// host's compiler.)
#if defined(__CUDACC__)
// Blocks that a multiprocessor has registers for, at least; without the number, ptxas spills to fit more. A file may
// define another one.
#ifndef LEAST_BLOCKS
#define LEAST_BLOCKS 2
#endif
#define KERNEL(name)                                                    \
  extern "C" __global__ void __launch_bounds__(kThreads, LEAST_BLOCKS) \
      keel_##name(const __grid_constant__ KeelArgs args)
#define BLOCK_KERNEL(name) KERNEL(name)
#define WIDE_KERNEL(name) \
  extern "C" __global__ void __launch_bounds__(kMostThreads, 1) keel_##name(const __grid_constant__ KeelArgs args)
// Before a loop over an array that has to stay in registers.
#define UNROLL _Pragma("unroll")
// A u32 of which the compiler knows nothing from here on.
#define OPAQUE(x) asm volatile("" : "+r"(x))
#define KEEL_PRAGMA(text) _Pragma(#text)
#define UNROLL_BY(n) KEEL_PRAGMA(unroll n)
// Before a loop whose copies would cost registers.
#define NO_UNROLL _Pragma("unroll 1")
#endif

DEVICE u64 address_of(const KeelArgs& args, int i) {
  const u64 base = args.table && args.slot[i] != kNoSlot ? args.table[args.slot[i]] : 0;
  return base + args.address[i];
}
// In global memory, which makes for other instructions than any memory.
template <class T>
DEVICE T* operand(const KeelArgs& args, int i) {
  return (T*)__cvta_global_to_generic(address_of(args, i));
}

// A thread's first element, and the distance to its next one.
DEVICE i64 first_element() { return (i64)blockIdx.x * kThreads + threadIdx.x; }
DEVICE i64 grid_size() { return (i64)gridDim.x * kThreads; }
// Where a block takes U * kThreads at a time: a thread's first one; the others are kThreads apart.
template <int U>
DEVICE i64 first_vector() {
  return (i64)blockIdx.x * (U * kThreads) + threadIdx.x;
}

// Of numbers that are not negative: in 32 bits if they fit.
DEVICE i64 quotient(i64 a, i64 b) { return (a | b) >> 32 ? a / b : (i64)((u32)a / (u32)b); }

// Offsets of element i in N tensors: numbers are the sizes of `rank` dims, then the strides of each tensor. I: what the
// offsets are counted in. With `dims`, so many are in the numbers, and the element is that of the first `rank`.
template <int N, class I>
DEVICE void find_offsets(const i64* numbers, int rank, I i, i64* at, int dims = 0) {
  if (!dims) dims = rank;
  for (int t = 0; t < N; t++) at[t] = 0;
  NO_UNROLL for (int d = rank - 1; d >= 0; d--) {
    const I size = (I)numbers[d], rest = d ? i / size : 0, index = i - rest * size;
    i = rest;
    for (int t = 0; t < N; t++) at[t] += (I)(index * (I)numbers[dims * (t + 1) + d]);
  }
}

// The first thread of a run that fails stores why: see keel_impl.h.
struct KeelFault {
  u32 code, bound;
  i64 index;
};
DEVICE void store_fault(const KeelArgs& args, i64 index, u32 bound) {
  const u64 base = args.table && args.fault_slot != kNoSlot ? args.table[args.fault_slot] : 0;
  KeelFault* fault = (KeelFault*)(base + args.fault);
  if (atomicCAS(&fault->code, 0u, args.fault_code) != 0) return;
  fault->index = index;
  fault->bound = bound;
}

#endif
