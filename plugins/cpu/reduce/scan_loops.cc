// scan_loops.cc: scan_loops.inc for each SIMD level.
#include "plugins/cpu/reduce/scan_loops.h"

#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/reduce/scan_loops.inc"
#include "plugins/cpu/simd/simd_levels.inc"

namespace keel_cpu {

ScanLoop FindScan(bool reverse, bool exclusive) { return (*KEEL_PICK(kScans))[reverse][exclusive]; }

}  // namespace keel_cpu
