// tensor.cc: checks and decodes tensor data. Raw bytes are used in place; typed fields (float_data ...) are
// converted; small floats, bools and short integers are in int32_data, packed elements byte by byte. A number
// that its dtype does not have is an error, although other readers take its low byte.
#include "plugins/onnx/model/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "plugins/onnx/import/failure.h"
#include "plugins/onnx/model/external.h"
#include "plugins/onnx/model/wire.h"

namespace onnx_import {
namespace {

constexpr keel_dt kDtypes[] = {
    0,        KEEL_F32, KEEL_U8,     KEEL_I8,       KEEL_U16,        KEEL_I16,    KEEL_I32,
    KEEL_I64, 0,        KEEL_BOOL,   KEEL_F16,      KEEL_F64,        KEEL_U32,    KEEL_U64,
    0,        0,        KEEL_BF16,   KEEL_F8E4M3FN, KEEL_F8E4M3FNUZ, KEEL_F8E5M2, KEEL_F8E5M2FNUZ,
    KEEL_U4,  KEEL_I4,  KEEL_F4E2M1, KEEL_F8E8M0,   KEEL_U2,         KEEL_I2};
constexpr const char* kNames[] = {
    "UNDEFINED", "FLOAT",      "UINT8",      "INT8",         "UINT16",         "INT16",      "INT32",
    "INT64",     "STRING",     "BOOL",       "FLOAT16",      "DOUBLE",         "UINT32",     "UINT64",
    "COMPLEX64", "COMPLEX128", "BFLOAT16",   "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ",
    "UINT4",     "INT4",       "FLOAT4E2M1", "FLOAT8E8M0",   "UINT2",          "INT2"};

template <class From>
void narrow(const std::vector<From>& list, Data& d) {
  const uint64_t width = width_of(d.dtype);
  d.own.resize(list.size() * width);
  for (size_t i = 0; i < list.size(); i++) std::memcpy(d.own.data() + i * width, &list[i], width);
}

enum TypedField {
  kFloatData = 4,
  kInt32Data = 5,
  kStringData = 6,
  kInt64Data = 7,
  kDoubleData = 10,
  kUint64Data = 11
};
uint32_t field_of(int64_t element_type) {
  switch (element_type) {
    case kFloat:
      return kFloatData;
    case kDouble:
      return kDoubleData;
    case kInt64:
      return kInt64Data;
    case kUint32:
    case kUint64:
      return kUint64Data;
    default:
      return kInt32Data;
  }
}

struct Range {
  int64_t low, high;
};

// The valid entries of int32_data or uint64_data: numbers of the dtype, the bits of a float as an unsigned
// number, or bytes of packed integers, which writers have signed or not.
Range entries_of(keel_dt dtype) {
  const uint64_t bits = 8 * width_of(dtype);
  if (bits == 64) return {INT64_MIN, INT64_MAX};
  const int64_t end = int64_t{1} << bits;
  const bool packed = keel::is_storage_integer(dtype), is_signed = (dtype & 0xff) == (KEEL_I8 & 0xff);
  return {packed || is_signed ? -end / 2 : 0, is_signed && !packed ? end / 2 - 1 : end - 1};
}

void check_entries(const std::vector<int64_t>& list, const Tensor& t, bool is_uint64, keel_dt dtype) {
  const auto [low, high] = entries_of(dtype);
  for (size_t i = 0; i < list.size(); i++) {
    if (list[i] >= low && list[i] <= high) continue;
    const std::string got = is_uint64 ? cat(static_cast<uint64_t>(list[i])) : cat(list[i]);
    refuse(KEEL_INVALID, cat("tensor '", t.name, "' has ", got, " at index ", i, " of ",
                             is_uint64 ? "uint64_data" : "int32_data", "; expected numbers from ", low,
                             " to ", high, ", as its element type is ", kNames[t.type]));
  }
}

// Of each entry the low bytes, as the machine is little-endian.
void decode_integers(const Tensor& t, uint32_t field, std::vector<int64_t>& list, Data& d) {
  if (field == kInt32Data)  // a protobuf int32 has 32 bits, however many are written
    for (int64_t& n : list) n = static_cast<int32_t>(n);
  if (d.dtype == KEEL_BOOL)
    for (int64_t& n : list) n = n != 0;
  else
    check_entries(list, t, field == kUint64Data, d.dtype);
  narrow(list, d);
}

void decode_typed(const Tensor& t, Data& d) {
  std::vector<int64_t> integers;
  std::vector<float> floats;
  std::vector<double> doubles;
  const uint32_t field = field_of(t.type);
  for (Wire w(t.message); w.next();) {
    if (w.field != field) continue;
    if (field == kFloatData)
      w.append_to(floats);
    else if (field == kDoubleData)
      w.append_to(doubles);
    else
      w.append_to(integers);
  }
  if (field == kFloatData)
    narrow(floats, d);
  else if (field == kDoubleData)
    narrow(doubles, d);
  else
    decode_integers(t, field, integers, d);
  d.bytes = d.own.data();
  d.size = d.own.size();
}

// A bool in the file may be any byte; Keel's are 0 and 1.
void clean_bools(Data& d) {
  bool clean = true;
  for (uint64_t i = 0; i < d.size && clean; i++) clean = d.bytes[i] < 2;
  if (clean) return;
  std::vector<uint8_t> own(d.bytes, d.bytes + d.size);
  for (auto& byte : own) byte = byte != 0;
  d.own = std::move(own);
  d.bytes = d.own.data();
  d.in_source = false;
  d.mapping = nullptr;
}

template <class T>
T load(const Data& d, int64_t i) {
  T value;
  std::memcpy(&value, d.bytes + static_cast<uint64_t>(i) * sizeof(T), sizeof(T));
  return value;
}

double half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 31  ? (fraction ? NAN : INFINITY)
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 ? -size : size;
}

double brain_float(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return static_cast<double>(value);
}

}  // namespace

int64_t Data::count() const {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

keel_dt dtype_of(int64_t type, const std::string& what) {
  const bool named = type >= 0 && type < static_cast<int64_t>(std::size(kNames));
  if (type > 0 && type < static_cast<int64_t>(std::size(kDtypes)) && kDtypes[type]) return kDtypes[type];
  refuse(type == 0 || !named ? KEEL_INVALID : KEEL_UNIMPLEMENTED,
         cat(what, " has element type ", named ? kNames[type] : std::to_string(type),
             ", which Keel does not support"));
}

int64_t element_type(keel_dt t) {
  const auto* found = std::find(std::begin(kDtypes) + 1, std::end(kDtypes), t);
  return found == std::end(kDtypes) ? 0 : found - std::begin(kDtypes);
}

std::string dtype_name(keel_dt t) {
  if (t == KEEL_BOOL) return "bool";
  if (keel::is_storage(t)) return kNames[element_type(t)];
  constexpr const char* kLetters[] = {"i", "u", "f", "?", "bf"};
  const uint32_t code = t & 0xff;
  return cat(code < 5 ? kLetters[code] : "?", (t >> 8) & 0xff);
}

int64_t checked_count(const std::vector<int64_t>& dims, const std::string& what) {
  if (dims.size() > KEEL_MAX_RANK)
    refuse(KEEL_UNIMPLEMENTED, cat(what, " has ", dims.size(), " dims; Keel has at most ", KEEL_MAX_RANK));
  int64_t n = 1;
  bool empty = false;
  for (int64_t d : dims) {
    if (d < 0) refuse(KEEL_INVALID, cat(what, " has the negative dim ", d));
    empty |= d == 0;
    if (d > 0 && __builtin_mul_overflow(n, d, &n))
      refuse(KEEL_INVALID, cat(what, " has dims whose product overflows"));
  }
  return empty ? 0 : n;
}

Data decode(const Tensor& t, const keel_source& source) {
  const std::string what = cat("tensor '", t.name, "'");
  Data d;
  d.dtype = dtype_of(t.type, what);
  d.dims = t.dims;
  const int64_t count = checked_count(t.dims, what);
  uint64_t wanted = 0;
  if (__builtin_mul_overflow(static_cast<uint64_t>(count), uint64_t{64}, &wanted))  // in bits, at most
    refuse(KEEL_INVALID, cat(what, " has dims whose size overflows"));
  wanted = keel_bytes(d.dtype, count);
  if (t.is_external) {
    open_external(t, source, wanted, d);
  } else if (t.has_raw) {
    d.bytes = reinterpret_cast<const uint8_t*>(t.raw.data());
    d.size = t.raw.size();
    d.in_source = true;
  } else {
    decode_typed(t, d);
  }
  if (d.size != wanted)
    refuse(KEEL_INVALID, cat(what, " has ", d.size, " bytes of data; expected ", wanted, " from its dims"));
  if (d.dtype == KEEL_BOOL) clean_bools(d);
  return d;
}

std::vector<std::string> words_in(const Tensor& t) {
  const std::string what = cat("tensor '", t.name, "'");
  if (t.is_external || t.has_raw) refuse(KEEL_INVALID, cat(what, " has strings outside of string_data"));
  std::vector<std::string> words;
  for (Wire w(t.message); w.next();)
    if (w.field == kStringData) words.emplace_back(w.text());
  const int64_t count = checked_count(t.dims, what);
  if (std::ssize(words) != count)
    refuse(KEEL_INVALID, cat(what, " has ", words.size(), " strings; expected ", count, " from its dims"));
  return words;
}

std::shared_ptr<Data> store(keel_dt dtype, const std::vector<int64_t>& dims,
                            const std::vector<double>& numbers) {
  auto d = std::make_shared<Data>();
  d->dtype = dtype;
  d->dims = dims;
  d->size = numbers.size() * width_of(dtype);
  d->own.resize(d->size);
  d->bytes = d->own.data();
  for (size_t i = 0; i < numbers.size(); i++) {
    const auto put = [&](auto number) {
      std::memcpy(d->own.data() + i * sizeof number, &number, sizeof number);
    };
    if (dtype == KEEL_F64) put(numbers[i]);
    if (dtype == KEEL_F32) put(static_cast<float>(numbers[i]));
    if (dtype == KEEL_I64) put(static_cast<int64_t>(numbers[i]));
    if (dtype == KEEL_I32) put(static_cast<int32_t>(numbers[i]));
  }
  return d;
}

std::shared_ptr<Data> store(const std::vector<int64_t>& dims, const std::vector<int64_t>& numbers) {
  auto d = std::make_shared<Data>();
  d->dtype = KEEL_I64;
  d->dims = dims;
  d->size = numbers.size() * sizeof(int64_t);
  d->own.resize(d->size);
  if (d->size) std::memcpy(d->own.data(), numbers.data(), d->size);
  d->bytes = d->own.data();
  return d;
}

bool integer_at(const Data& d, int64_t i, int64_t* out) {
  switch (d.dtype) {
    case KEEL_I64:
      *out = load<int64_t>(d, i);
      return true;
    case KEEL_I32:
      *out = load<int32_t>(d, i);
      return true;
    case KEEL_I16:
      *out = load<int16_t>(d, i);
      return true;
    case KEEL_I8:
      *out = load<int8_t>(d, i);
      return true;
    case KEEL_U8:
      *out = load<uint8_t>(d, i);
      return true;
    case KEEL_U16:
      *out = load<uint16_t>(d, i);
      return true;
    case KEEL_U32:
      *out = load<uint32_t>(d, i);
      return true;
    case KEEL_BOOL:
      *out = load<uint8_t>(d, i);
      return true;
    default:
      return false;
  }
}

bool number_at(const Data& d, int64_t i, double* out) {
  int64_t n = 0;
  if (d.dtype == KEEL_F32)
    *out = load<float>(d, i);
  else if (d.dtype == KEEL_F64)
    *out = load<double>(d, i);
  else if (d.dtype == KEEL_F16)
    *out = half(load<uint16_t>(d, i));
  else if (d.dtype == KEEL_BF16)
    *out = brain_float(load<uint16_t>(d, i));
  else if (integer_at(d, i, &n))
    *out = static_cast<double>(n);
  else
    return false;
  return true;
}

}  // namespace onnx_import
