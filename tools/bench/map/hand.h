// hand.h: what someone would write who fuses by hand; compiled for this machine.
#pragma once

#include <cstdint>

namespace map_bench {

void NineOps(const float* x, const float* w, const float* b, float* y, int64_t n);

}  // namespace map_bench
