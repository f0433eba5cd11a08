// simd.h: one binary that uses what the machine has. A file of loops, NAME_loops.inc, is compiled once
// per level of x86-64, each time in its own namespace, from NAME_loops.cc:
//
//   #define KEEL_LOOPS "NAME_loops.inc"
//   #include "plugins/cpu/simd/simd_levels.inc"
//
// The loops are plain C++ for the compiler to vectorise; each level ends in a constant table of function
// pointers, and KEEL_PICK(table) gives the table of the best level that this machine runs. Elsewhere
// there is one level, what the compiler was told to target.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace keel_cpu {

int SimdLevel();  // 0: baseline, 1: AVX2 and FMA, 2: AVX-512

// The classes of processor, each of which has all that the ones before it have. The environment variable
// KEEL_CPU_ISA (sse4, avx2, avx512, amx), read once at load, holds our loops, our machine code and oneDNN to
// one of them.
enum class Isa { kSse4, kAvx2, kAvx512, kAmx };
Isa MachineIsa();          // what this machine is
Isa UsedIsa();             // what code is chosen for: the machine's, or the one below it that was asked for
const char* NameOf(Isa);   // as in KEEL_CPU_ISA
const char* IsaProblem();  // null, or what is wrong with KEEL_CPU_ISA
void LimitOneDnn();        // to what was asked for; before anything else of oneDNN is called

}  // namespace keel_cpu

// Elements do not depend on each other even where the result shares memory with an operand.
#if defined(__clang__)
#define KEEL_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define KEEL_IVDEP _Pragma("GCC ivdep")
#endif

#if defined(__x86_64__)
#define KEEL_PICK(table) (SimdLevel() == 2 ? &avx512::table : SimdLevel() == 1 ? &avx2::table : &base::table)
#else
#define KEEL_PICK(table) (&base::table)
#endif
