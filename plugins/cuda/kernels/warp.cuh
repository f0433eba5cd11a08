// warp.cuh: what the 32 threads of a warp do together: products of small matrices by tensor cores, loads of their
// parts from shared memory, exchanges. All threads of a block call each of these equally often. A thread's part of a matrix is as in
// the PTX manual for mma.m16n8k16: with g = lane / 4 and t = lane % 4, results c are at (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
// For the host's compiler, tests/cuda/fake/simt_warp.h has the same functions.
#ifndef KEEL_PLUGINS_CUDA_WARP_CUH
#define KEEL_PLUGINS_CUDA_WARP_CUH

DEVICE int lane_of_thread() { return (int)threadIdx.x % 32; }
DEVICE f32 of_lane_xor(f32 mine, int mask) { return __shfl_xor_sync(0xffffffffu, mine, mask); }

#if defined(__CUDACC__)
template <class T>
struct Halves;  // of(): two elements in 32 bits, the first one low. multiply(): c += a b; a 16 x 16, b 16 x 8
#define HALVES(S)                                                                                                                \
  template <>                                                                                                                    \
  struct Halves<S> {                                                                                                             \
    static DEVICE u32 of(f32 low, f32 high) {                                                                                    \
      u32 both;                                                                                                                  \
      asm("cvt.rn." #S "x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));                                                 \
      return both;                                                                                                               \
    }                                                                                                                            \
    static DEVICE void multiply(f32* c, const u32* a, const u32* b) {                                                            \
      asm("mma.sync.aligned.m16n8k16.row.col.f32." #S "." #S ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"        \
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                                                       \
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                                                   \
    }                                                                                                                            \
  };
HALVES(f16)
HALVES(bf16)
#undef HALVES

DEVICE u32 shared_address(const void* at) { return (u32)__cvta_generic_to_shared(at); }
// Four matrices of 8 x 8 halves; thread i names row i % 8 of matrix i / 8 and gets (g, 2t) and (g, 2t + 1) of each.
DEVICE void load_matrices(u32* out, const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(shared_address(row))
               : "memory");
}
// The same of the transposed matrices.
DEVICE void load_matrices_transposed(u32* out, const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(shared_address(row))
               : "memory");
}

// The same for bytes: c += a b in i32; a 16 x 32, b 32 x 8. A word holds four, so that elements are at 4t to 4t + 3.
DEVICE void multiply_bytes(i32* c, const u32* a, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// The sum of four signed bytes, and x.
DEVICE i32 add_bytes(u32 word, i32 x) { return __dp4a((i32)word, 0x01010101, x); }
// Bytes 0 to 3 of low and 4 to 7 of high, by the digits of `places`.
DEVICE u32 choose_bytes(u32 low, u32 high, u32 places) { return __byte_perm(low, high, places); }

// 2^x, the result 0 where it would be denormal: an error of 2 in the last place.
DEVICE f32 power_of_2(f32 x) {
  f32 y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#else
#include "simt_warp.h"
#endif

#endif
