// hand.cc: see hand.h. No multiplication is fused with an addition, so that the bits are those of the ops.
#include "hand.h"

#include <cmath>

namespace map_bench {

void NineOps(const float* __restrict x, const float* __restrict w, const float* __restrict b,
             float* __restrict y, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const float t1 = x[i] * w[i] + b[i];
    const float t2 = -2.0f < t1 || t1 != t1 ? t1 : -2.0f;
    const float t3 = t2 - x[i];
    y[i] = std::fabs(t3 * t3 + w[i]) * 0.5f + x[i];
  }
}

}  // namespace map_bench
