// align.h: rounding sizes up to an alignment.
#pragma once

#include <cstdint>

namespace keel {

// The smallest multiple of step (at least 1) that is at least n.
constexpr uint64_t RoundUp(uint64_t n, uint64_t step) { return (n + step - 1) / step * step; }

}  // namespace keel
