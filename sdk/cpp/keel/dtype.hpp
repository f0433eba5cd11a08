// dtype.hpp: names, sizes and C++ types of the element types.
//
// How to read it: one table of all dtypes, then lookups by name, by code and by C++ type.
#ifndef KEEL_DTYPE_HPP
#define KEEL_DTYPE_HPP
#include <cstdint>
#include <string>
#include <string_view>

#include "keel/keel.h"

namespace keel {

struct DtypeRow {
  keel_dt code;
  std::string_view name;
  uint8_t size;  // bytes that hold one element; of several see keel_bytes
  char kind;     // 'i' signed, 'u' unsigned, 'f' floating, 'b' bool, 's' storage (storage.hpp)
};

inline constexpr DtypeRow kDtypes[] = {
    {KEEL_BOOL, "bool", 1, 'b'},
    {KEEL_I8, "i8", 1, 'i'},
    {KEEL_I16, "i16", 2, 'i'},
    {KEEL_I32, "i32", 4, 'i'},
    {KEEL_I64, "i64", 8, 'i'},
    {KEEL_U8, "u8", 1, 'u'},
    {KEEL_U16, "u16", 2, 'u'},
    {KEEL_U32, "u32", 4, 'u'},
    {KEEL_U64, "u64", 8, 'u'},
    {KEEL_F16, "f16", 2, 'f'},
    {KEEL_BF16, "bf16", 2, 'f'},
    {KEEL_F32, "f32", 4, 'f'},
    {KEEL_F64, "f64", 8, 'f'},
    {KEEL_F8E4M3FN, "f8e4m3fn", 1, 's'},
    {KEEL_F8E4M3FNUZ, "f8e4m3fnuz", 1, 's'},
    {KEEL_F8E5M2, "f8e5m2", 1, 's'},
    {KEEL_F8E5M2FNUZ, "f8e5m2fnuz", 1, 's'},
    {KEEL_F8E8M0, "f8e8m0", 1, 's'},
    {KEEL_I4, "i4", 1, 's'},
    {KEEL_U4, "u4", 1, 's'},
    {KEEL_I2, "i2", 1, 's'},
    {KEEL_U2, "u2", 1, 's'},
    {KEEL_F4E2M1, "f4e2m1", 1, 's'},
};

/// The row of a dtype; nullptr for an unknown dtype.
constexpr const DtypeRow* find_dtype(keel_dt code) {
  for (const DtypeRow& row : kDtypes)
    if (row.code == code) return &row;
  return nullptr;
}
constexpr const DtypeRow* find_dtype(std::string_view name) {
  for (const DtypeRow& row : kDtypes)
    if (row.name == name) return &row;
  return nullptr;
}
/// "f32"; "?" for an unknown dtype.
constexpr std::string_view dtype_name(keel_dt code) {
  const DtypeRow* row = find_dtype(code);
  return row ? row->name : "?";
}
/// Bytes that hold one element; 0 for an unknown dtype.
constexpr int dtype_size(keel_dt code) {
  const DtypeRow* row = find_dtype(code);
  return row ? row->size : 0;
}
/// keel_dt from the dtype of a tensor, and back.
constexpr keel_dt dtype_pack(keel_dtype d) {
  return static_cast<keel_dt>(d.code) | static_cast<keel_dt>(d.bits) << 8 |
         static_cast<keel_dt>(d.lanes) << 16;
}
constexpr keel_dtype dtype_unpack(keel_dt d) {
  return {static_cast<uint8_t>(d), static_cast<uint8_t>(d >> 8), static_cast<uint16_t>(d >> 16)};
}

/// dtype_of<float> is KEEL_F32, and so on.
template <class T>
inline constexpr keel_dt dtype_of = 0;
template <>
inline constexpr keel_dt dtype_of<bool> = KEEL_BOOL;
template <>
inline constexpr keel_dt dtype_of<int8_t> = KEEL_I8;
template <>
inline constexpr keel_dt dtype_of<int16_t> = KEEL_I16;
template <>
inline constexpr keel_dt dtype_of<int32_t> = KEEL_I32;
template <>
inline constexpr keel_dt dtype_of<int64_t> = KEEL_I64;
template <>
inline constexpr keel_dt dtype_of<uint8_t> = KEEL_U8;
template <>
inline constexpr keel_dt dtype_of<uint16_t> = KEEL_U16;
template <>
inline constexpr keel_dt dtype_of<uint32_t> = KEEL_U32;
template <>
inline constexpr keel_dt dtype_of<uint64_t> = KEEL_U64;
template <>
inline constexpr keel_dt dtype_of<float> = KEEL_F32;
template <>
inline constexpr keel_dt dtype_of<double> = KEEL_F64;

/// "f32[2, 3]"; unknown sizes are "?".
inline std::string type_text(const keel_tensor& tensor) {
  std::string text(dtype_name(dtype_pack(tensor.dtype)));
  for (int32_t d = 0; d < tensor.ndim; d++)
    text += (d ? ", " : "[") + (tensor.shape[d] < 0 ? std::string("?") : std::to_string(tensor.shape[d]));
  return text + (tensor.ndim ? "]" : "[]");
}

}  // namespace keel
#endif
