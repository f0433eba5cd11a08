// align.h: sizes rounded up to what something is aligned to.
#pragma once

#include <cstdint>

namespace keel {

// The least multiple of `step`, at least 1, that is not below n.
constexpr uint64_t RoundUp(uint64_t n, uint64_t step) { return (n + step - 1) / step * step; }

}  // namespace keel
