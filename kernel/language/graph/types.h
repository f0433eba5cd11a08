// types.h: checks of tensor types.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernel/language/opset/opset.h"

namespace keel {

// Checks dtype, rank and dims (numbers up to kMaxDim, or expressions); `what` prefixes the message.
absl::Status CheckType(std::string_view what, const TensorType&, const DimTable&);
// Size in bytes of a type with numeric dims; an error beyond kMaxTensorBytes.
absl::StatusOr<uint64_t> BytesOf(std::string_view what, const TensorType&);
// Whether the types are equal for some sizes, as far as their expressions show.
bool MayBeEqual(const TensorType& a, const TensorType& b, const DimTable&);
// Merges an inferred and a declared type: a dim that inference leaves open is taken from the declaration. An
// error if they differ for certain.
absl::StatusOr<TensorType> MergeTypes(std::string_view what, const TensorType& inferred,
                                      const TensorType& declared, const DimTable&);

}  // namespace keel
