// copy_loops.cc: compiles copy_loops.inc per SIMD level and selects one.
#include "plugins/cpu/shape/copy_loops.h"

#include <cstring>

#include "plugins/cpu/common.h"
#include "plugins/cpu/parallel/fetch.h"
#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/shape/copy_loops.inc"
#include "plugins/cpu/simd/simd_levels.inc"

namespace keel_cpu {

CopyRowsLoop FindCopyRows() { return *KEEL_PICK(kCopyRows); }

}  // namespace keel_cpu
