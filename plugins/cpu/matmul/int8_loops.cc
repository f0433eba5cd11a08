// int8_loops.cc: compiles int8.inc per SIMD level, and for AVX-512 VNNI, and selects one.
#include <algorithm>
#include <type_traits>

#include "plugins/cpu/matmul/int8.h"
#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/matmul/int8.inc"
#include "plugins/cpu/simd/simd_vnni.inc"

namespace keel_cpu {

const Int8Kernel& Int8Loops() { return *KEEL_PICK_VNNI(kInt8); }
const Int8Kernel& Int16Loops() { return *KEEL_PICK(kInt8); }

}  // namespace keel_cpu
