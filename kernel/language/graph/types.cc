#include "kernel/language/graph/types.h"

#include "kernel/language/graph/limits.h"

namespace keel {

absl::Status CheckType(std::string_view what, const TensorType& type, const DimTable& dims) {
  if (type.dtype == DType::kNone || type.dtype >= DType::kCount) return Invalid(what, " has no dtype");
  if (type.dims.size() > kMaxRank)
    return Invalid(what, " has rank ", type.dims.size(), "; the limit is ", kMaxRank);
  bool concrete = true;
  for (Dim d : type.dims) {
    if (!dims.Contains(d)) return Invalid(what, " has a dim that is a handle of another module");
    concrete = concrete && !IsSymbolic(d);
    if (!IsSymbolic(d) && (d < 0 || d > kMaxDim))
      return Invalid(what, " has type ", Print(type, dims), ": a dim must be from 0 to ", kMaxDim);
  }
  return concrete ? BytesOf(what, type).status() : absl::OkStatus();
}

absl::StatusOr<uint64_t> BytesOf(std::string_view what, const TensorType& type) {
  int64_t count = 1;
  for (Dim d : type.dims)
    if (d == 0) return 0;
  for (Dim d : type.dims) {
    if (__builtin_mul_overflow(count, d, &count) ||
        static_cast<uint64_t>(count) > kMaxTensorBytes / SizeOf(type.dtype))
      return Exhausted(what, " takes more than ", kMaxTensorBytes, " bytes, the limit of one tensor");
  }
  return keel::BytesOf(type.dtype, count);
}

bool MayBeEqual(const TensorType& a, const TensorType& b, const DimTable& dims) {
  if (a.dtype != b.dtype || a.dims.size() != b.dims.size()) return false;
  for (size_t d = 0; d < a.dims.size(); d++) {
    if (a.dims[d] == b.dims[d]) continue;
    Order order = dims.Compare(a.dims[d], b.dims[d]);
    if (order != Order::kEqual && order != Order::kUnknown) return false;
  }
  return true;
}

absl::StatusOr<TensorType> MergeTypes(std::string_view what, const TensorType& inferred,
                                      const TensorType& declared, const DimTable& dims) {
  TensorType merged = declared;
  for (size_t i = 0; i < merged.dims.size() && i < inferred.dims.size(); i++)
    if (dims.Compare(inferred.dims[i], declared.dims[i]) == Order::kEqual) merged.dims[i] = inferred.dims[i];
  if (MayBeEqual(inferred, declared, dims)) return merged;
  return Invalid(what, " is ", Print(inferred, dims), " but was declared as ", Print(declared, dims));
}

}  // namespace keel
