// bare_values.h: elements as bytes, for the tests of impls: random draws, conversion, comparison.
#pragma once

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "bare_plugin.h"

namespace bare {

using Rng = std::mt19937;

inline constexpr keel_dt kFloats[] = {KEEL_F32, KEEL_F64, KEEL_F16, KEEL_BF16};
inline constexpr keel_dt kInts[] = {KEEL_I8, KEEL_I16, KEEL_I32, KEEL_I64,
                                    KEEL_U8, KEEL_U16, KEEL_U32, KEEL_U64};
inline bool IsFloat(keel_dt dt) { return (dt & 255) == 2 || (dt & 255) == 4; }

inline double FromHalf(uint16_t h) {
  const int exponent = h >> 10 & 31, mantissa = h & 1023;
  const double magnitude = exponent == 31  ? (mantissa ? NAN : INFINITY)
                           : exponent == 0 ? std::ldexp(mantissa, -24)
                                           : std::ldexp(1024 + mantissa, exponent - 25);
  return h & 0x8000 ? -magnitude : magnitude;
}

template <class T>
T As(const char* at) {
  T v;
  std::memcpy(&v, at, sizeof(T));
  return v;
}
// A float as a double; an integer as closely as a double represents it.
inline double Get(const std::string& bytes, keel_dt dt, int64_t i) {
  const int64_t size = (dt >> 8 & 255) / 8;
  const char* at = bytes.data() + i * size;
  switch (dt) {
    case KEEL_F64:
      return As<double>(at);
    case KEEL_F32:
      return static_cast<double>(As<float>(at));
    case KEEL_F16:
      return FromHalf(As<uint16_t>(at));
    case KEEL_BF16:
      return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(As<uint16_t>(at)) << 16));
    case KEEL_I64:
      return static_cast<double>(As<int64_t>(at));
    case KEEL_I32:
      return As<int32_t>(at);
    default:
      return static_cast<double>(As<uint8_t>(at));
  }
}

// Bytes of a tensor: floats within +-span, with `wild` also special values; integers of all sizes.
inline std::string Draw(Rng& rng, const BareTensor& t, double span, bool wild = false) {
  std::string bytes(static_cast<size_t>(t.Bytes()), '\0');
  for (int64_t i = 0; i < t.Count(); i++) {
    char* at = bytes.data() + i * t.Size();
    const bool odd = wild && rng() % 8 == 0;
    constexpr double kOdd[] = {0.0, -0.0, NAN, INFINITY, -INFINITY, 1e-42, 3e38, -1e30};
    const double d = odd ? kOdd[rng() % 8] : span * (static_cast<double>(rng() % 20001) / 10000 - 1);
    const float f = static_cast<float>(d);
    const uint64_t n = odd ? std::numeric_limits<uint64_t>::max() << (rng() % 64) : rng() % 200 - 100;
    const uint32_t mantissa = rng() % 1024, sign = rng() % 2 << 15;
    const uint16_t half = static_cast<uint16_t>(odd ? rng() : sign | (0x3400 + mantissa + (rng() % 3 << 10)));
    const uint16_t brain = static_cast<uint16_t>(std::bit_cast<uint32_t>(f) >> 16);
    const uint8_t bit = rng() & 1;
    if (t.dtype == KEEL_F64) std::memcpy(at, &d, 8);
    if (t.dtype == KEEL_F32) std::memcpy(at, &f, 4);
    if (t.dtype == KEEL_F16) std::memcpy(at, &half, 2);
    if (t.dtype == KEEL_BF16) std::memcpy(at, &brain, 2);
    if (t.dtype == KEEL_BOOL) std::memcpy(at, &bit, 1);
    if (!IsFloat(t.dtype) && t.dtype != KEEL_BOOL) std::memcpy(at, &n, static_cast<size_t>(t.Size()));
  }
  return bytes;
}

// The relative error of one rounding.
inline double Ulp(keel_dt dt) {
  return dt == KEEL_F64 ? 0x1p-52 : dt == KEEL_F32 ? 0x1p-23 : dt == KEEL_F16 ? 0x1p-10 : 0x1p-7;
}

// ulps: tolerance in units in the last place; floor: the least magnitude used for an element (for sums, the
// magnitude of the terms).
inline void ExpectClose(const std::string& got, const std::string& want, const BareTensor& t, double ulps,
                        double floor) {
  ASSERT_EQ(got.size(), want.size());
  if (!IsFloat(t.dtype)) {
    for (size_t i = 0; i < got.size(); i++) ASSERT_EQ(got[i], want[i]) << "byte " << i;
    return;
  }
  for (int64_t i = 0; i < t.Count(); i++) {
    const double a = Get(got, t.dtype, i), b = Get(want, t.dtype, i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b) continue;
    const double least = t.dtype == KEEL_F16 ? 0x1p-14 : std::numeric_limits<float>::min();
    ASSERT_LE(std::fabs(a - b), ulps * Ulp(t.dtype) * std::max({std::fabs(b), floor, least}))
        << "element " << i << ": " << a << ", expected " << b;
  }
}

// A node with attributes that own their values.
class NodeBuilder {
 public:
  NodeBuilder(const char* op, std::vector<BareTensor> in, std::vector<BareTensor> out) {
    node.op = op;
    node.in = std::move(in);
    node.out = std::move(out);
  }
  NodeBuilder& Int(const char* name, int64_t v) { return Put(name, KEEL_ATTR_I64, v); }
  NodeBuilder& Flag(const char* name, bool v) { return Put(name, KEEL_ATTR_BOOL, v); }
  NodeBuilder& Dim(const char* name, int64_t v) { return Put(name, KEEL_ATTR_DIM, v); }
  NodeBuilder& Dtype(const char* name, keel_dt v) { return Put(name, KEEL_ATTR_DTYPE, v); }
  NodeBuilder& Real(const char* name, double v) {
    node.attrs[name] = {KEEL_ATTR_F64, 0, 0, v, nullptr};
    return *this;
  }
  NodeBuilder& Ints(const char* name, std::vector<int64_t> v) {
    lists_.push_back(std::make_shared<std::vector<int64_t>>(std::move(v)));
    node.attrs[name] = {KEEL_ATTR_I64S, static_cast<uint32_t>(lists_.back()->size()), 0, 0,
                        lists_.back()->data()};
    return *this;
  }
  keel_node node;

 private:
  NodeBuilder& Put(const char* name, int32_t kind, int64_t v) {
    node.attrs[name] = {kind, 0, v, 0, nullptr};
    return *this;
  }
  std::vector<std::shared_ptr<std::vector<int64_t>>> lists_;
};

}  // namespace bare
