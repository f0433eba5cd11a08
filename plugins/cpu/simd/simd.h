// simd.h: one binary for several x86-64 levels. A loop file, NAME_loops.inc, is compiled once per level, each
// time in its own namespace, from NAME_loops.cc:
//
//   #define KEEL_LOOPS "NAME_loops.inc"
//   #include "plugins/cpu/simd/simd_levels.inc"
//
// The loops are plain C++ for the compiler to vectorise. Each level ends in a constant table of function
// pointers, and KEEL_PICK(table) selects the table of the best level of this machine. Other architectures
// have one level, the compiler's target.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace keel_cpu {

int SimdLevel();             // 0: baseline, 1: AVX2 and FMA, 2: AVX-512
int64_t SecondLevelCache();  // its bytes
bool HasVnni();              // level 2, with AVX-512 VNNI (simd_vnni.inc)

// Processor classes; each includes the previous ones. The environment variable KEEL_CPU_ISA (sse4, avx2,
// avx512, amx), read once at load, limits the loops, machine code and oneDNN to a class.
enum class Isa { kSse4, kAvx2, kAvx512, kAmx };
Isa MachineIsa();  // the class of this machine
Isa UsedIsa();     // the class that code is selected for: the machine's, or a lower one by KEEL_CPU_ISA
const char* NameOf(Isa);           // as in KEEL_CPU_ISA
const char* IsaProblem();          // null, or the error in KEEL_CPU_ISA
enum class Chip { kAmd, kIntel };  // makers of processors, whose caches and units differ
Chip ThisChip();                   // of an unknown maker: as kAmd
void LimitOneDnn();                // limits oneDNN to UsedIsa; call it before any other oneDNN function

}  // namespace keel_cpu

// Iterations are independent even if the result shares memory with an operand.
#if defined(__clang__)
#define KEEL_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define KEEL_IVDEP _Pragma("GCC ivdep")
#endif

#if defined(__x86_64__)
#define KEEL_PICK(table) (SimdLevel() == 2 ? &avx512::table : SimdLevel() == 1 ? &avx2::table : &base::table)
#define KEEL_PICK_VNNI(table) (HasVnni() ? &vnni::table : KEEL_PICK(table))
#else
#define KEEL_PICK(table) (&base::table)
#define KEEL_PICK_VNNI(table) KEEL_PICK(table)
#endif
