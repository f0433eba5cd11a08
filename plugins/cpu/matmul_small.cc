// matmul_small.cc: compiles matmul_small.inc per SIMD level and decides which products go there.
#include "matmul_small.h"

#include "simd.h"

namespace keel_cpu {

struct SmallShape {
  int64_t m, n, k;
  int64_t whole;  // how many rows of b have a vector's width from their beginning to the end of b
};
struct SmallMatmul {
  keel_dt dtype;
  int64_t lanes;  // most columns
  Run run;        // its state: a SmallShape
};

}  // namespace keel_cpu

#define KEEL_LOOPS "matmul_small.inc"
#include "simd_levels.inc"

namespace keel_cpu {
namespace {

constexpr int64_t kMostWork = 32 * 1024;  // multiplications; more is worth packing and splitting

}  // namespace

bool PrepareMatmulSmall(keel_dt dtype, const MatmulShape& s, keel_launch* launch) {
  const bool plain = !s.ta && !s.tb && s.Batches() == 1 && s.b_matrices == 1;
  if (!plain || s.Work() > kMostWork || s.Work() == 0) return false;
  for (const SmallMatmul& op : *KEEL_PICK(kSmall))
    if (op.dtype == dtype && s.n <= op.lanes) {
      const int64_t whole = s.k * s.n < op.lanes ? 0 : (s.k * s.n - op.lanes) / s.n + 1;
      Keep(launch, SmallShape{s.m, s.n, s.k, whole}, op.run);
      return true;
    }
  return false;
}

}  // namespace keel_cpu
