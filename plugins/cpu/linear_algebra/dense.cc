// dense.cc: compiles dense.inc per SIMD level and selects one.
#include "plugins/cpu/linear_algebra/dense.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <vector>

#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/linear_algebra/dense.inc"
#include "plugins/cpu/simd/simd_levels.inc"

namespace keel_cpu {

// Small matrices would leave most of a wide strip unused.
const DenseTable& Dense([[maybe_unused]] int64_t n) {
#if defined(__x86_64__)
  if (n <= base::kStrip) return base::kDense;
  if (n <= avx2::kStrip && SimdLevel() > 0) return avx2::kDense;
#endif
  return *KEEL_PICK(kDense);
}

}  // namespace keel_cpu
