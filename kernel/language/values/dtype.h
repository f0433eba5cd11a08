// dtype.h: the element types and their properties.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "abi/keel_base.h"

namespace keel {

// Dense index. The numbers are stored in files: append only.
enum class DType : uint8_t {
  kNone,
  kBool,
  kI8,
  kI16,
  kI32,
  kI64,
  kU8,
  kU16,
  kU32,
  kU64,
  kF16,
  kBF16,
  kF32,
  kF64,
  kCount
};

enum class DKind : uint8_t { kNone, kBool, kInt, kUint, kFloat };

struct DTypeInfo {
  std::string_view name;  // as in text: "f32"
  DKind kind;
  uint32_t size;  // bytes of an element
  keel_dt code;   // as in the C ABI
};

const DTypeInfo& Info(DType);
inline std::string_view Name(DType d) { return Info(d).name; }
inline uint32_t SizeOf(DType d) { return Info(d).size; }
inline bool IsFloating(DType d) { return Info(d).kind == DKind::kFloat; }
std::optional<DType> ParseDType(std::string_view name);
std::optional<DType> DTypeOf(keel_dt code);
std::optional<DType> DTypeOf(keel_dtype parts);
keel_dtype AbiDType(DType);
// Whether every value of `narrow` is exact in `wide`, and distinct values stay distinct.
bool Holds(DType wide, DType narrow);

}  // namespace keel
