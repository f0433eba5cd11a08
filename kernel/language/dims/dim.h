// dim.h: dims that may be symbolic. A Dim is an int64: a number, or a handle (below KEEL_DIM_HANDLES) of an
// expression in the DimTable of its module. Numbers need no table.
#pragma once

#include <cstdint>

#include "abi/keel_base.h"
#include "absl/container/inlined_vector.h"

namespace keel {

using Dim = keel_dim;
using Dims = absl::InlinedVector<Dim, 6>;
inline constexpr Dim kMaxDim = Dim{1} << 40;
inline constexpr bool IsSymbolic(Dim d) { return KEEL_DIM_IS_HANDLE(d); }

}  // namespace keel
