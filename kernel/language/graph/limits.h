// limits.h: limits for all external input; see abi/README.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/keel_base.h"

namespace keel {

inline constexpr size_t kMaxNodes = 1'000'000, kMaxNameBytes = 1024, kMaxRank = KEEL_MAX_RANK;
inline constexpr uint64_t kMaxTensorBytes = uint64_t{1} << 40;
inline constexpr uint32_t kMaxCallDepth = 32;
inline constexpr size_t kMaxVariables = 65536;

}  // namespace keel
