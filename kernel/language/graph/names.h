// names.h: names of values, graphs and other parts of a module.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "kernel/base/status.h"

namespace keel {

bool IsUtf8(std::string_view);
// Checks length, UTF-8 and control bytes. (Names other than [A-Za-z_][A-Za-z0-9_.]* are quoted in text.)
absl::Status CheckName(std::string_view what, std::string_view name);

// "v12" and "v12_1": the names of unnamed results.
std::string ResultName(uint32_t node, uint32_t result);
// The numbers in such a name; nullopt for other names.
std::optional<std::pair<uint32_t, uint32_t>> SplitResultName(std::string_view name);
// A number of decimal digits without leading zeros.
bool WholeNumber(std::string_view text, uint32_t* out);

}  // namespace keel
