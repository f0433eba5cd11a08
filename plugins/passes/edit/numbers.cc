// numbers.cc: converts elements of all dtypes to double and back.
#include "plugins/passes/edit/numbers.h"

#include <cfloat>
#include <cmath>
#include <cstring>

#include "sdk/cpp/keel/storage.hpp"

namespace keel_passes {
namespace {

constexpr int64_t kExact = int64_t{1} << 53;  // integers up to here are exact in double

template <class T>
T load(const void* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

double half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return sign * (fraction != 0 ? NAN : INFINITY);
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

uint16_t half_bits(double v) {  // of a normal number that is exact in f16
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(v), &exponent) * 2048 - 1024;
  const int sign = std::signbit(v) ? 0x8000 : 0;
  return static_cast<uint16_t>(sign | (exponent + 14) << 10 | static_cast<int>(fraction));
}

double brain(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  return static_cast<double>(load<float>(&wide));
}

int64_t whole(keel_dt dtype, const void* p) {  // the caller ensures that the value fits 63 bits
  const uint32_t width = width_of(dtype);
  uint64_t v = 0;
  std::memcpy(&v, p, width);
  const uint32_t unused = 64 - 8 * width;
  const bool is_signed = (dtype & 0xff) == 0;
  return is_signed ? static_cast<int64_t>(v << unused) >> unused : static_cast<int64_t>(v);
}

std::optional<double> element(keel_dt dtype, const void* p) {
  if (dtype == KEEL_F32) return static_cast<double>(load<float>(p));
  if (dtype == KEEL_F64) return load<double>(p);
  if (dtype == KEEL_F16) return half(load<uint16_t>(p));
  if (dtype == KEEL_BF16) return brain(load<uint16_t>(p));
  const int64_t n = whole(dtype, p);
  if (n > kExact || n < -kExact) return std::nullopt;
  return static_cast<double>(n);
}

template <class T>
bool round_all(const std::vector<double>& from, double least, std::vector<T>* to) {
  for (double v : from) {
    to->push_back(static_cast<T>(v));
    const double kept = std::fabs(static_cast<double>(to->back()));
    if (!std::isfinite(kept) || (v != 0 && kept < least)) return false;
  }
  return true;
}

}  // namespace

std::optional<double> uniform(const Edit& e, keel_value v) {
  if (v == KEEL_NO_VALUE) return std::nullopt;
  const Type t = e.type(v);
  const int64_t n = t.count();
  if (t.data == nullptr || n <= 0 || keel::is_storage(t.dtype)) return std::nullopt;
  const auto* bytes = static_cast<const uint8_t*>(t.data);
  const uint32_t width = width_of(t.dtype);
  if (std::memcmp(bytes, bytes + width, static_cast<size_t>(n - 1) * width) != 0) return std::nullopt;
  return element(t.dtype, bytes);
}

bool is_all(const Edit& e, keel_value v, double number) {
  const std::optional<double> all = uniform(e, v);
  return all && *all == number && std::signbit(*all) == std::signbit(number);
}

bool near(double a, double b, keel_dt dtype) {
  const double eps = dtype == KEEL_F64 ? 1e-15 : dtype == KEEL_F32 ? 1.2e-7 : dtype == KEEL_F16 ? 1e-3 : 8e-3;
  return std::fabs(a - b) <= 2 * eps * std::fabs(b);
}

std::optional<std::vector<double>> doubles(const Edit& e, keel_value v) {
  if (v == KEEL_NO_VALUE) return std::nullopt;
  const Type t = e.type(v);
  if (t.data == nullptr || (t.dtype != KEEL_F32 && t.dtype != KEEL_F64)) return std::nullopt;
  std::vector<double> out(static_cast<size_t>(t.count()));
  const auto* bytes = static_cast<const uint8_t*>(t.data);
  for (size_t i = 0; i < out.size(); i++) out[i] = *element(t.dtype, bytes + i * width_of(t.dtype));
  return out;
}

std::optional<keel_value> store(Edit& e, keel_dt dtype, const Dims& dims, const std::vector<double>& v) {
  if (dtype == KEEL_F64) {
    std::vector<double> kept;
    if (!round_all(v, DBL_MIN, &kept)) return std::nullopt;
    return e.constant(dtype, dims, kept.data());
  }
  std::vector<float> kept;
  if (dtype != KEEL_F32 || !round_all(v, static_cast<double>(FLT_MIN), &kept)) return std::nullopt;
  return e.constant(dtype, dims, kept.data());
}

keel_value scalar(Edit& e, keel_dt dtype, double number) {
  const auto narrow = static_cast<float>(number);
  uint32_t bits = 0;
  std::memcpy(&bits, &narrow, sizeof bits);
  const auto brained = static_cast<uint16_t>(bits >> 16);
  const auto halved = half_bits(number);
  const void* data = dtype == KEEL_F64   ? static_cast<const void*>(&number)
                     : dtype == KEEL_F32 ? static_cast<const void*>(&narrow)
                     : dtype == KEEL_F16 ? static_cast<const void*>(&halved)
                                         : &brained;
  return e.constant(dtype, {}, data);
}

}  // namespace keel_passes
