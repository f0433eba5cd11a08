// copies.cuh: words of 8 or 16 bytes, and copies of them from global to shared memory that run while the thread goes on. A
// thread waits for its own copies; other threads see them after a __syncthreads that follows.
#ifndef KEEL_PLUGINS_CUDA_COPIES_CUH
#define KEEL_PLUGINS_CUDA_COPIES_CUH

template <int N>
struct alignas(4 * N) Words {
  u32 at[N];
};

// Element i of words, as it is computed with.
template <class S>
struct Packed {
  static DEVICE f32 at(const u32* words, int i) { return Number<S>::from({(u16)(words[i / 2] >> i % 2 * 16)}); }
};
template <>
struct Packed<f32> {
  static DEVICE f32 at(const u32* words, int i) { return __uint_as_float(words[i]); }
};

#if defined(__CUDACC__)
// Both addresses are multiples of BYTES. Zeros if not `inside`; then nothing is read.
template <int BYTES>
DEVICE void copy_async(void* to, const void* from, bool inside) {
  const u32 there = (u32)__cvta_generic_to_shared(to), bytes = inside ? BYTES : 0;
  if (BYTES == 16)
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(there), "l"(from), "r"(bytes) : "memory");
  else
    asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 8, %2;" ::"r"(there), "l"(from), "r"(bytes) : "memory");
}
// Ends a group of copies, which may be empty.
DEVICE void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits for all groups but the last N.
template <int N>
DEVICE void await_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
#endif

#endif
