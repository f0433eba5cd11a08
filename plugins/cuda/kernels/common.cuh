// common.cuh: what kernels share: operands by number, grid loops, strides, faults. Without headers, for
// run-time compilation; args.h and scalar.cuh come before it.
#ifndef KEEL_PLUGINS_CUDA_COMMON_CUH
#define KEEL_PLUGINS_CUDA_COMMON_CUH

// A kernel, which the driver knows as keel_NAME. BLOCK_KERNEL: its threads meet at __syncthreads. (tests/cuda/fake/simt.h defines them for the
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
// Before a loop over an array that has to stay in registers.
#define UNROLL _Pragma("unroll")
// Before a loop whose copies hide latency, but cost registers.
#define UNROLL_BY_2 _Pragma("unroll 2")
// Before a loop whose copies would cost registers.
#define NO_UNROLL _Pragma("unroll 1")
#endif

DEVICE u64 address_of(const KeelArgs& args, int i) {
  const u64 base = args.table && args.slot[i] != kNoSlot ? args.table[args.slot[i]] : 0;
  return base + args.address[i];
}
template <class T>
DEVICE T* operand(const KeelArgs& args, int i) {
  return (T*)address_of(args, i);
}

// A thread's first element, and the distance to its next one.
DEVICE i64 first_element() { return (i64)blockIdx.x * kThreads + threadIdx.x; }
DEVICE i64 grid_size() { return (i64)gridDim.x * kThreads; }

// Offsets of element i in N tensors: numbers are the sizes of `rank` dims, then the strides of each tensor.
template <int N>
DEVICE void find_offsets(const i64* numbers, int rank, i64 i, i64* at) {
  for (int t = 0; t < N; t++) at[t] = 0;
  for (int d = rank - 1; d >= 0; d--) {
    const i64 size = numbers[d], index = d ? i % size : i;
    i = d ? i / size : 0;
    for (int t = 0; t < N; t++) at[t] += index * numbers[rank * (t + 1) + d];
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
