// element.cc: f16 and bf16 use SmallFloat; other dtypes std::from_chars and std::to_chars.

#include "kernel/language/graph/element.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/escaping.h"
#include "kernel/language/opset/lexer.h"

namespace keel {
namespace {

struct SmallFloat {
  int mantissa, min_exponent, max_exponent;
  int top() const { return max_exponent - min_exponent + 2; }  // the exponent field of inf and nan
};
constexpr SmallFloat kHalf{10, -14, 15}, kBrain{7, -126, 127};

uint16_t JoinBits(const SmallFloat& f, bool negative, int exponent, uint32_t fraction) {
  int sign_at = f.mantissa + (f.mantissa == 10 ? 5 : 8);
  return static_cast<uint16_t>(uint32_t{negative} << sign_at | static_cast<uint32_t>(exponent) << f.mantissa |
                               fraction);
}

// False if a finite value is too large.
bool Encode(const SmallFloat& f, double v, uint16_t* out) {
  bool negative = std::signbit(v);
  double a = std::fabs(v);
  if (std::isnan(v)) return *out = JoinBits(f, false, f.top(), 1u << (f.mantissa - 1)), true;
  if (std::isinf(v)) return *out = JoinBits(f, negative, f.top(), 0), true;
  int e = a == 0 ? f.min_exponent : std::max(std::ilogb(a), f.min_exponent);
  auto q = static_cast<uint32_t>(std::nearbyint(std::ldexp(a, f.mantissa - e)));
  if (q == 2u << f.mantissa) q /= 2, e++;
  if (e > f.max_exponent) return false;
  bool subnormal = q < 1u << f.mantissa;
  *out = JoinBits(f, negative, subnormal ? 0 : e - f.min_exponent + 1, q & ((1u << f.mantissa) - 1));
  return true;
}

double Decode(const SmallFloat& f, uint16_t bits) {
  uint32_t fraction = bits & ((1u << f.mantissa) - 1);
  int exponent = bits >> f.mantissa & ((f.mantissa == 10 ? 32 : 256) - 1);
  double v = 0;
  if (exponent == f.top())
    v = fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  else if (exponent == 0)
    v = std::ldexp(fraction, f.min_exponent - f.mantissa);
  else
    v = std::ldexp(fraction + (1u << f.mantissa), exponent - 1 + f.min_exponent - f.mantissa);
  return bits & 0x8000 ? -v : v;
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

std::string PrintSmall(const SmallFloat& f, const void* p) {
  auto bits = Load<uint16_t>(p);
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
  Store(out, bits);
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
  if (!Encode(f, value, &bits)) bits = JoinBits(f, value < 0, f.top(), 0);
  Store(out, bits);
  return absl::OkStatus();
}

absl::Status BoolFromDouble(DType, double value, void* out) {
  Store<uint8_t>(out, value != 0);
  return absl::OkStatus();
}

// One row per dtype, in enum order.
struct Row {
  std::string (*print)(const void*);
  absl::Status (*parse)(DType, std::string_view, void*);
  absl::Status (*from_double)(DType, double, void*);
};
std::string PrintF16(const void* p) { return PrintSmall(kHalf, p); }
std::string PrintBF16(const void* p) { return PrintSmall(kBrain, p); }
absl::Status ParseF16(DType d, std::string_view t, void* o) { return ParseSmall(kHalf, d, t, o); }
absl::Status ParseBF16(DType d, std::string_view t, void* o) { return ParseSmall(kBrain, d, t, o); }
absl::Status F16FromDouble(DType, double v, void* o) { return SmallFromDouble(kHalf, v, o); }
absl::Status BF16FromDouble(DType, double v, void* o) { return SmallFromDouble(kBrain, v, o); }
template <typename T>
constexpr Row kInteger = {PrintNumber<T>, ReadNumber<T>, FromDouble<T>};
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
                         {PrintF16, ParseF16, F16FromDouble},
                         {PrintBF16, ParseBF16, BF16FromDouble},
                         {PrintReal<float>, ReadNumber<float>, RealFromDouble<float>},
                         {PrintReal<double>, ReadNumber<double>, RealFromDouble<double>}};
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
  if (IsFloating(dtype)) return Decode(dtype == DType::kF16 ? kHalf : kBrain, Load<uint16_t>(element));
  uint64_t bits = 0;
  std::memcpy(&bits, element, SizeOf(dtype));
  if (Info(dtype).kind != DKind::kInt) return static_cast<double>(bits);
  const uint32_t unused = 64 - 8 * SizeOf(dtype);
  return static_cast<double>(static_cast<int64_t>(bits << unused) >> unused);
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
