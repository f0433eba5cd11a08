// element.h: single elements of any dtype as text and as double: literals, and the data of constants.
#pragma once

#include <string>
#include <string_view>

#include "kernel/base/status.h"
#include "kernel/values/dtype.h"

namespace keel {

// The shortest spelling that ParseElement reads back to the same bytes; "" if there is none (a NaN with
// a payload, a bool that is neither 0 nor 1). Floats always have '.', 'e', "inf" or "nan" in them.
std::string PrintElement(DType dtype, const void* element);

// Writes SizeOf(dtype) bytes. Integers are valid spellings of floats; what does not fit is an error.
absl::Status ParseElement(DType dtype, std::string_view text, void* element);

// Rounds to nearest even, beyond the largest to inf; integers truncate and must fit; bool: not zero.
absl::Status ElementFromDouble(DType dtype, double value, void* element);
double ElementToDouble(DType dtype, const void* element);  // rounded beyond 2^53; a bool is 0 or 1

// "0f80": two digits a byte, in memory order.
std::string PrintHex(const void* data, size_t bytes);
// Writes hex.size() / 2 bytes; false if a character is no hex digit or the number of digits is odd.
bool ParseHex(std::string_view hex, void* out);

}  // namespace keel
