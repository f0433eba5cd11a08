// cases.h: a node of each elementwise op for each combination of dtypes, from the table of scalar ops.
#pragma once

#include "bare_values.h"

namespace vulkan_test {

using Dims = std::vector<int64_t>;

// `dims` are those of every operand and of the result; clamp's bounds are scalars.
std::vector<keel_node> AllNodes(const Dims& dims);
std::string NameOf(const keel_node& node);  // "cast f32 -> u8"

// Elements of a dtype: the extreme and special ones, then random ones up to n (16-bit dtypes: all).
std::string SpecialElements(keel_dt dt);
std::string Elements(keel_dt dt, int64_t n, uint32_t seed);

}  // namespace vulkan_test
