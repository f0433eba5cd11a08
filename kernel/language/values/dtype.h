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
  kF8E4M3FN,  // from here on: storage dtypes
  kF8E4M3FNUZ,
  kF8E5M2,
  kF8E5M2FNUZ,
  kF8E8M0,
  kI4,
  kU4,
  kI2,
  kU2,
  kF4E2M1,
  kCount
};

// kStorage: values are kept and moved in this form, but only `cast` computes with them.
enum class DKind : uint8_t { kNone, kBool, kInt, kUint, kFloat, kStorage };

struct DTypeInfo {
  std::string_view name;  // as in text: "f32"
  DKind kind;
  uint32_t size;  // bytes that hold one element
  keel_dt code;   // as in the C ABI
};

const DTypeInfo& Info(DType);
inline std::string_view Name(DType d) { return Info(d).name; }
inline uint32_t SizeOf(DType d) { return Info(d).size; }
inline uint32_t BitsOf(DType d) { return Info(d).code >> 8 & 0xff; }
// Of several elements, which may be packed: never count * SizeOf.
inline uint64_t BytesOf(DType d, int64_t count) { return keel_bytes(Info(d).code, count); }
inline bool IsPacked(DType d) { return BitsOf(d) < 8; }
inline bool IsFloating(DType d) { return Info(d).kind == DKind::kFloat; }
inline bool IsStorage(DType d) { return Info(d).kind == DKind::kStorage; }
std::optional<DType> ParseDType(std::string_view name);
std::optional<DType> DTypeOf(keel_dt code);
std::optional<DType> DTypeOf(keel_dtype parts);
keel_dtype AbiDType(DType);
// Whether every value of `narrow` is exact in `wide`, and distinct values stay distinct. Storage dtypes: only
// if they are equal.
bool Holds(DType wide, DType narrow);

}  // namespace keel
