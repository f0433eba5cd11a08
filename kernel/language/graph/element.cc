// element.cc: floats of up to 16 bits use SmallFloat; other dtypes std::from_chars and std::to_chars.

#include "kernel/language/graph/element.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/escaping.h"
#include "kernel/language/opset/lexer.h"

namespace keel {
namespace {

// A float of at most 16 bits. Codes are its bits without the sign.
struct SmallFloat {
  uint32_t bits, mantissa;
  int min_exponent;              // of normal numbers
  uint32_t most, infinity, nan;  // codes of the largest number and of these; 0: there is none
  uint32_t sign() const { return 1u << (bits - 1); }
  bool has_one_zero() const { return nan == sign(); }  // the bits of -0 are NaN
};
constexpr SmallFloat kHalf{16, 10, -14, 0x7bff, 0x7c00, 0x7e00}, kBrain{16, 7, -126, 0x7f7f, 0x7f80, 0x7fc0},
    kE4M3FN{8, 3, -6, 0x7e, 0, 0x7f}, kE4M3FNUZ{8, 3, -7, 0x7f, 0, 0x80}, kE5M2{8, 2, -14, 0x7b, 0x7c, 0x7e},
    kE5M2FNUZ{8, 2, -15, 0x7f, 0, 0x80}, kE2M1{4, 1, 0, 7, 0, 0};

// False if there is none: a finite value is too large, or infinite or NaN and the type has no such number.
bool Encode(const SmallFloat& f, double v, uint16_t* out) {
  const uint32_t sign = std::signbit(v) ? f.sign() : 0;
  double a = std::fabs(v);
  if (std::isnan(v)) return *out = static_cast<uint16_t>(f.nan), f.nan != 0;
  if (std::isinf(v)) return *out = static_cast<uint16_t>(sign | f.infinity), f.infinity != 0;
  int e = a == 0 ? f.min_exponent : std::max(std::ilogb(a), f.min_exponent);
  auto q = static_cast<uint32_t>(std::nearbyint(std::ldexp(a, static_cast<int>(f.mantissa) - e)));
  const uint32_t code = q + (static_cast<uint32_t>(e - f.min_exponent) << f.mantissa);
  if (code > f.most) return false;
  *out = static_cast<uint16_t>(code == 0 && f.has_one_zero() ? 0 : sign | code);
  return true;
}

double Decode(const SmallFloat& f, uint32_t bits) {
  const uint32_t code = bits & (f.sign() - 1), exponent = code >> f.mantissa;
  const uint32_t fraction = code & ((1u << f.mantissa) - 1);
  if ((f.has_one_zero() && bits == f.nan) || (code > f.most && code != f.infinity))
    return std::numeric_limits<double>::quiet_NaN();
  double v = std::numeric_limits<double>::infinity();
  if (code <= f.most && exponent == 0)
    v = std::ldexp(fraction, f.min_exponent - static_cast<int>(f.mantissa));
  else if (code <= f.most)
    v = std::ldexp(fraction + (1u << f.mantissa),
                   static_cast<int>(exponent - 1 - f.mantissa) + f.min_exponent);
  return bits & f.sign() ? -v : v;
}

std::string WithPoint(std::string digits) {
  if (digits.find_first_of(".en") == std::string::npos) digits += ".0";
  return digits;
}

template <typename T>
T Load(const void* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <typename T>
void Store(void* p, T v) {
  std::memcpy(p, &v, sizeof v);
}

template <typename T>
std::string PrintNumber(const void* p) {
  char buffer[64];
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, Load<T>(p)).ptr);
}

template <typename T>
std::string PrintReal(const void* p) {
  T v = Load<T>(p);
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  if (!std::isnan(v)) return WithPoint(PrintNumber<T>(p));
  T plain = std::numeric_limits<T>::quiet_NaN();
  return std::memcmp(&plain, p, sizeof v) == 0 ? "nan" : "";
}

uint16_t LoadSmall(const SmallFloat& f, const void* p) {
  return f.bits == 16 ? Load<uint16_t>(p) : Load<uint8_t>(p);
}
void StoreSmall(const SmallFloat& f, uint16_t bits, void* p) { std::memcpy(p, &bits, f.bits == 16 ? 2 : 1); }

std::string PrintSmall(const SmallFloat& f, const void* p) {
  const uint16_t bits = LoadSmall(f, p);
  double v = Decode(f, bits);
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  uint16_t again = 0;
  if (std::isnan(v)) return Encode(f, v, &again) && again == bits ? "nan" : "";
  char buffer[64];
  if (v == std::trunc(v) && std::fabs(v) < 1e5)  // 65504.0 is more readable than 6.55e+04
    return WithPoint(
        std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, v, std::chars_format::fixed).ptr));
  for (int precision = 1;; precision++) {
    auto end = std::to_chars(buffer, buffer + sizeof buffer, v, std::chars_format::general, precision).ptr;
    double back = 0;
    std::from_chars(buffer, end, back);
    if ((Encode(f, back, &again) && again == bits) || precision == 17)
      return WithPoint(std::string(buffer, end));
  }
}

absl::Status DoesNotFit(std::string_view text, DType dtype) {
  return Invalid("'", text.substr(0, 40), "' is not a number that ", Name(dtype), " can hold");
}

template <typename T>
absl::Status ReadNumber(DType dtype, std::string_view text, void* out) {
  T v{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc() || end != text.data() + text.size()) return DoesNotFit(text, dtype);
  Store(out, v);
  return absl::OkStatus();
}

absl::Status ParseSmall(const SmallFloat& f, DType dtype, std::string_view text, void* out) {
  double v = 0;
  RETURN_IF_ERROR(ReadNumber<double>(dtype, text, &v));
  uint16_t bits = 0;
  if (!Encode(f, v, &bits)) return DoesNotFit(text, dtype);
  StoreSmall(f, bits, out);
  return absl::OkStatus();
}

std::string PrintBool(const void* p) {
  auto v = Load<uint8_t>(p);
  return v == 0 ? "false" : v == 1 ? "true" : "";
}

absl::Status ParseBool(DType dtype, std::string_view text, void* out) {
  if (text != "true" && text != "false") return DoesNotFit(text, dtype);
  Store<uint8_t>(out, text == "true");
  return absl::OkStatus();
}

template <typename T>
absl::Status FromDouble(DType dtype, double value, void* out) {
  double whole = std::trunc(value), top = std::ldexp(1.0, std::numeric_limits<T>::digits);
  double bottom = std::is_signed_v<T> ? -top : 0;
  if (!(whole < top && whole >= bottom)) return DoesNotFit(PrintReal<double>(&value), dtype);
  Store(out, static_cast<T>(whole));
  return absl::OkStatus();
}

// Unlike parsing, conversion overflows to inf.
template <typename T>
absl::Status RealFromDouble(DType, double value, void* out) {
  Store(out, static_cast<T>(value));
  return absl::OkStatus();
}

absl::Status SmallFromDouble(const SmallFloat& f, double value, void* out) {
  uint16_t bits = 0;
  if (!Encode(f, value, &bits))
    bits = static_cast<uint16_t>(
        std::isnan(value) ? 0 : (value < 0 ? f.sign() : 0) | (f.infinity ? f.infinity : f.most));
  StoreSmall(f, bits, out);
  return absl::OkStatus();
}

absl::Status BoolFromDouble(DType, double value, void* out) {
  Store<uint8_t>(out, value != 0);
  return absl::OkStatus();
}

// ---- powers of two: f8e8m0

std::string PrintPower(const void* p) {
  const double v = std::ldexp(1.0, Load<uint8_t>(p) - 127);
  return Load<uint8_t>(p) == 0xff ? "nan" : PrintReal<double>(&v);
}
absl::Status ParsePower(DType dtype, std::string_view text, void* out) {
  double v = 0;
  RETURN_IF_ERROR(ReadNumber<double>(dtype, text, &v));
  const bool fits =
      v > 0 && std::isfinite(v) && std::ldexp(1.0, std::ilogb(v)) == v && std::fabs(std::ilogb(v)) <= 127;
  if (!fits && !std::isnan(v)) return DoesNotFit(text, dtype);
  Store(out, static_cast<uint8_t>(fits ? std::ilogb(v) + 127 : 0xff));
  return absl::OkStatus();
}
absl::Status PowerFromDouble(DType, double v, void* out) {  // as `cast`: halves up, saturates
  int exponent = 0;
  const double half = std::frexp(v, &exponent);  // v = half * 2^exponent, half from 0.5 below 1
  exponent += half >= 0.75 ? 127 : 126;
  if (std::isinf(v)) exponent = 254;
  Store(out, static_cast<uint8_t>(v < 0 || std::isnan(v) ? 0xff : v == 0 ? 0 : std::clamp(exponent, 0, 254)));
  return absl::OkStatus();
}

// ---- integers of 2 and 4 bits: in the lowest bits of a byte

template <int kBits, bool kSigned>
int LoadTiny(const void* p) {
  const int bits = Load<uint8_t>(p) & ((1 << kBits) - 1);
  return kSigned && bits >> (kBits - 1) ? bits - (1 << kBits) : bits;
}
template <int kBits, bool kSigned>
bool StoreTiny(int v, void* out) {
  constexpr int kLeast = kSigned ? -(1 << (kBits - 1)) : 0;
  if (v < kLeast || v >= kLeast + (1 << kBits)) return false;
  Store(out, static_cast<uint8_t>(v & ((1 << kBits) - 1)));
  return true;
}
template <int kBits, bool kSigned>
std::string PrintTiny(const void* p) {
  return absl::StrCat(LoadTiny<kBits, kSigned>(p));
}
template <int kBits, bool kSigned>
absl::Status ParseTiny(DType dtype, std::string_view text, void* out) {
  int v = 0;
  RETURN_IF_ERROR(ReadNumber<int>(dtype, text, &v));
  return StoreTiny<kBits, kSigned>(v, out) ? absl::OkStatus() : DoesNotFit(text, dtype);
}
template <int kBits, bool kSigned>
absl::Status TinyFromDouble(DType dtype, double value, void* out) {
  const double whole = std::trunc(value);
  if (std::fabs(whole) < 99 && StoreTiny<kBits, kSigned>(static_cast<int>(whole), out))
    return absl::OkStatus();
  return DoesNotFit(PrintReal<double>(&value), dtype);
}

// One row per dtype, in enum order.
struct Row {
  std::string (*print)(const void*);
  absl::Status (*parse)(DType, std::string_view, void*);
  absl::Status (*from_double)(DType, double, void*);
  double (*to_double)(const void*) = nullptr;  // of the dtypes that C++ lacks
};
template <const SmallFloat& kF>
constexpr Row kSmall = {[](const void* p) { return PrintSmall(kF, p); },
                        [](DType d, std::string_view t, void* o) { return ParseSmall(kF, d, t, o); },
                        [](DType, double v, void* o) { return SmallFromDouble(kF, v, o); },
                        [](const void* p) { return Decode(kF, LoadSmall(kF, p)); }};
template <typename T>
constexpr Row kInteger = {PrintNumber<T>, ReadNumber<T>, FromDouble<T>};
template <int kBits, bool kSigned>
constexpr Row kTiny = {PrintTiny<kBits, kSigned>, ParseTiny<kBits, kSigned>, TinyFromDouble<kBits, kSigned>,
                       [](const void* p) { return static_cast<double>(LoadTiny<kBits, kSigned>(p)); }};
constexpr Row kPower = {PrintPower, ParsePower, PowerFromDouble, [](const void* p) {
                          return Load<uint8_t>(p) == 0xff ? std::numeric_limits<double>::quiet_NaN()
                                                          : std::ldexp(1.0, Load<uint8_t>(p) - 127);
                        }};
constexpr Row kRows[] = {{nullptr, nullptr, nullptr},
                         {PrintBool, ParseBool, BoolFromDouble},
                         kInteger<int8_t>,
                         kInteger<int16_t>,
                         kInteger<int32_t>,
                         kInteger<int64_t>,
                         kInteger<uint8_t>,
                         kInteger<uint16_t>,
                         kInteger<uint32_t>,
                         kInteger<uint64_t>,
                         kSmall<kHalf>,
                         kSmall<kBrain>,
                         {PrintReal<float>, ReadNumber<float>, RealFromDouble<float>},
                         {PrintReal<double>, ReadNumber<double>, RealFromDouble<double>},
                         kSmall<kE4M3FN>,
                         kSmall<kE4M3FNUZ>,
                         kSmall<kE5M2>,
                         kSmall<kE5M2FNUZ>,
                         kPower,
                         kTiny<4, true>,
                         kTiny<4, false>,
                         kTiny<2, true>,
                         kTiny<2, false>,
                         kSmall<kE2M1>};
static_assert(std::size(kRows) == static_cast<size_t>(DType::kCount));

}  // namespace

std::string PrintElement(DType dtype, const void* element) {
  auto print = kRows[static_cast<size_t>(dtype)].print;
  return print ? print(element) : "";
}

absl::Status ParseElement(DType dtype, std::string_view text, void* element) {
  auto parse = kRows[static_cast<size_t>(dtype)].parse;
  if (!parse) return Invalid("a literal requires a dtype");
  if (text == "-nan" || text.empty() || text[0] == '+') return DoesNotFit(text, dtype);
  return parse(dtype, text, element);
}

absl::Status ElementFromDouble(DType dtype, double value, void* element) {
  auto from = kRows[static_cast<size_t>(dtype)].from_double;
  return from ? from(dtype, value, element) : Invalid("a number requires a dtype");
}

double ElementToDouble(DType dtype, const void* element) {
  if (dtype == DType::kF64) return Load<double>(element);
  if (dtype == DType::kF32) return static_cast<double>(Load<float>(element));
  if (auto small = kRows[static_cast<size_t>(dtype)].to_double) return small(element);
  uint64_t bits = 0;
  std::memcpy(&bits, element, SizeOf(dtype));
  if (Info(dtype).kind != DKind::kInt) return static_cast<double>(bits);
  const uint32_t unused = 64 - 8 * SizeOf(dtype);
  return static_cast<double>(static_cast<int64_t>(bits << unused) >> unused);
}

void LoadElement(DType dtype, const void* data, int64_t i, void* element) {
  const uint32_t bits = BitsOf(dtype), size = SizeOf(dtype);
  const auto* p = static_cast<const uint8_t*>(data);
  if (bits >= 8) return static_cast<void>(std::memcpy(element, p + i * size, size));
  const int64_t at = i * bits;
  *static_cast<uint8_t*>(element) = static_cast<uint8_t>(p[at / 8] >> at % 8 & ((1 << bits) - 1));
}

void StoreElement(DType dtype, const void* element, int64_t i, void* data) {
  const uint32_t bits = BitsOf(dtype), size = SizeOf(dtype);
  auto* p = static_cast<uint8_t*>(data);
  if (bits >= 8) return static_cast<void>(std::memcpy(p + i * size, element, size));
  const int64_t at = i * bits;
  const int mask = ((1 << bits) - 1) << at % 8;
  const int mine = *static_cast<const uint8_t*>(element) << at % 8 & mask;
  p[at / 8] = static_cast<uint8_t>((p[at / 8] & ~mask) | mine);
}

std::string PrintHex(const void* data, size_t bytes) {
  return absl::BytesToHexString({static_cast<const char*>(data), bytes});
}

bool ParseHex(std::string_view hex, void* out) {
  if (hex.size() % 2) return false;
  auto p = static_cast<uint8_t*>(out);
  for (size_t i = 0; i < hex.size(); i += 2) {
    int high = HexDigit(hex[i]), low = HexDigit(hex[i + 1]);
    if (high < 0 || low < 0) return false;
    p[i / 2] = static_cast<uint8_t>(high * 16 + low);
  }
  return true;
}

}  // namespace keel
