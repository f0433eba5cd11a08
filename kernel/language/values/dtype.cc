#include "kernel/language/values/dtype.h"

#include <array>
#include <bit>

namespace keel {
namespace {

constexpr size_t kCount = static_cast<size_t>(DType::kCount);
constexpr std::array<DTypeInfo, kCount> kTable = {{
    {"none", DKind::kNone, 0, 0},
    {"bool", DKind::kBool, 1, KEEL_BOOL},
    {"i8", DKind::kInt, 1, KEEL_I8},
    {"i16", DKind::kInt, 2, KEEL_I16},
    {"i32", DKind::kInt, 4, KEEL_I32},
    {"i64", DKind::kInt, 8, KEEL_I64},
    {"u8", DKind::kUint, 1, KEEL_U8},
    {"u16", DKind::kUint, 2, KEEL_U16},
    {"u32", DKind::kUint, 4, KEEL_U32},
    {"u64", DKind::kUint, 8, KEEL_U64},
    {"f16", DKind::kFloat, 2, KEEL_F16},
    {"bf16", DKind::kFloat, 2, KEEL_BF16},
    {"f32", DKind::kFloat, 4, KEEL_F32},
    {"f64", DKind::kFloat, 8, KEEL_F64},
    {"f8e4m3fn", DKind::kStorage, 1, KEEL_F8E4M3FN},
    {"f8e4m3fnuz", DKind::kStorage, 1, KEEL_F8E4M3FNUZ},
    {"f8e5m2", DKind::kStorage, 1, KEEL_F8E5M2},
    {"f8e5m2fnuz", DKind::kStorage, 1, KEEL_F8E5M2FNUZ},
    {"f8e8m0", DKind::kStorage, 1, KEEL_F8E8M0},
    {"i4", DKind::kStorage, 1, KEEL_I4},
    {"u4", DKind::kStorage, 1, KEEL_U4},
    {"i2", DKind::kStorage, 1, KEEL_I2},
    {"u2", DKind::kStorage, 1, KEEL_U2},
    {"f4e2m1", DKind::kStorage, 1, KEEL_F4E2M1},
}};

}  // namespace

const DTypeInfo& Info(DType d) {
  return kTable[static_cast<size_t>(d) < kCount ? static_cast<size_t>(d) : 0];
}

std::optional<DType> ParseDType(std::string_view name) {
  for (size_t i = 1; i < kCount; i++)
    if (kTable[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

std::optional<DType> DTypeOf(keel_dt code) {
  for (size_t i = 1; i < kCount; i++)
    if (kTable[i].code == code) return static_cast<DType>(i);
  return std::nullopt;
}

std::optional<DType> DTypeOf(keel_dtype p) {
  return DTypeOf(static_cast<keel_dt>(p.code | p.bits << 8 | static_cast<uint32_t>(p.lanes) << 16));
}

bool Holds(DType wide, DType narrow) {
  if (wide == narrow) return true;
  if (IsStorage(wide) || IsStorage(narrow)) return false;
  const DTypeInfo &w = Info(wide), &n = Info(narrow);
  if (n.kind == DKind::kFloat)
    return w.kind == DKind::kFloat && w.size > n.size;  // f16 and bf16 exclude each other
  auto is_signed = [](const DTypeInfo& d) { return d.kind == DKind::kInt || d.kind == DKind::kFloat; };
  auto digits = [](DType d, const DTypeInfo& i) {  // bits of the integers that it represents without gaps
    if (i.kind == DKind::kFloat)
      return d == DType::kF16 ? 11u : d == DType::kBF16 ? 8u : i.size == 4 ? 24u : 53u;
    return i.kind == DKind::kBool ? 1u : i.size * 8 - (i.kind == DKind::kInt ? 1 : 0);
  };
  return digits(narrow, n) <= digits(wide, w) && (is_signed(w) || !is_signed(n));
}

keel_dtype AbiDType(DType d) { return std::bit_cast<keel_dtype>(Info(d).code); }

}  // namespace keel
