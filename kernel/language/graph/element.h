// element.h: single elements of any dtype as text and as double.
#pragma once

#include <string>
#include <string_view>

#include "kernel/base/status.h"
#include "kernel/language/values/dtype.h"

namespace keel {

// The shortest text that ParseElement converts back to the same bytes; "" if there is none (a NaN with a
// payload, a bool that is neither 0 nor 1). Floats always contain '.', 'e', "inf" or "nan".
std::string PrintElement(DType dtype, const void* element);

// Writes SizeOf(dtype) bytes. Integers are valid as floats; a number out of range is an error.
absl::Status ParseElement(DType dtype, std::string_view text, void* element);

// One element of an array, which may be packed, and back; a packed element alone is in the lowest bits of a
// byte.
void LoadElement(DType dtype, const void* data, int64_t i, void* element);
void StoreElement(DType dtype, const void* element, int64_t i, void* data);

// Floats round to nearest even and overflow to inf (if the dtype has it, else to the largest number);
// integers truncate, out of range is an error; bool: value
// != 0.
absl::Status ElementFromDouble(DType dtype, double value, void* element);
double ElementToDouble(DType dtype, const void* element);  // rounded beyond 2^53; a bool is 0 or 1

// "0f80": two digits per byte, in memory order.
std::string PrintHex(const void* data, size_t bytes);
// Writes hex.size() / 2 bytes; false for other characters or an odd number of digits.
bool ParseHex(std::string_view hex, void* out);

}  // namespace keel
