// small.cc: compiles small.inc per SIMD level and selects the products that use it.
#include "plugins/cpu/matmul/small.h"

#include "plugins/cpu/simd/simd.h"

#define KEEL_LOOPS "plugins/cpu/matmul/small.inc"
#include "plugins/cpu/simd/simd_levels.inc"

namespace keel_cpu {
namespace {

constexpr int64_t kMostWork = 32 * 1024;  // multiplications; larger products benefit from packing and threads

}  // namespace

bool PrepareMatmulSmall(keel_dt dtype, const MatmulShape& s, keel_launch* launch) {
  const bool plain = !s.ta && !s.tb && s.Batches() == 1 && s.b_matrices == 1;
  if (!plain || s.Work() > kMostWork || s.Work() == 0) return false;
  for (std::span<const SmallMatmul> ops : {IfmaMatmuls(), *KEEL_PICK(kSmall)})
    for (const SmallMatmul& op : ops)
      if (op.dtype == dtype && s.n <= op.lanes) {
        const int64_t whole = s.k * s.n < op.lanes ? 0 : (s.k * s.n - op.lanes) / s.n + 1;
        Keep(launch, SmallShape{s.m, s.n, s.k, whole}, op.run);
        return true;
      }
  return false;
}

}  // namespace keel_cpu
