// turn.cc: sine and cosine. An angle x is n quarters of a turn and a rest r, |r| <= pi / 4: in f64, for f32
// too.
#include <cmath>
#include <iterator>

#include "math.h"

namespace keel_spirv {
namespace {

constexpr double kHalfPi = 1.57079632679489661923, kHalfPiHigh = 0x1.921fb5p+0,
                 kHalfPiLow = 0x1.110b4611a6263p-26;

// 64 bits of 0, then the first 1184 bits of 2 / pi.
constexpr uint32_t kTwoOverPi[] = {
    0,          0,          0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041,
    0xfe5163ab, 0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e,
    0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b,
    0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d,
    0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046};

struct Turned {
  Value n, r;  // n: u64
};

// Subtracts n pi / 2 with pi / 2 in three parts, of which n times the first is exact: |x| < 2^20.
Turned TurnNear0(Value x) {
  const Value k = x.code->Ext(kRoundEven, x * (1 / kHalfPi));
  return {ToInteger(k), ((x - k * 1.57079632673412561417e+00) - k * 6.07710050630396597660e-11) -
                            k * 2.02226624879595063154e-21};
}

// ---- Payne and Hanek 1983: of x * 2 / pi only the bits of weight 2 and less count. x = m 2^k, so those of 2
// / pi from weight 2^(1-k) on are multiplied with m: 192 bits, which is exact enough for the closest x to a
// multiple of pi / 2.

// Words `first` to `first` + n - 1 of the table: log2 steps of selection.
std::vector<Value> TableAt(Value first, size_t n) {
  std::vector<Value> words;
  for (size_t i = 0; i < n + 63; i++)
    words.push_back(first.code->U32(i < std::size(kTwoOverPi) ? kTwoOverPi[i] : 0));
  for (int bit = 5; bit >= 0; bit--) {
    const size_t step = size_t{1} << bit;
    const Value set = (first & static_cast<double>(step)) != 0;
    for (size_t i = 0; i + step < words.size(); i++) words[i] = Select(set, words[i + step], words[i]);
    words.resize(words.size() - step);
  }
  return words;
}
Value Joined(Value high, Value low) { return (Widen(high) << 32) | Widen(low); }

// The words of m * 2 / pi from weight 2 on, lowest first. at: number of that bit in the table.
std::vector<Value> Product(Value m, Value at) {
  const std::vector<Value> words = TableAt(at >> 5, 7);
  const Value shift = at & 31;
  std::vector<Value> product;
  Value carry = Like(m, 0);
  for (size_t i = 0; i < 6; i++) {
    const Value word = (words[5 - i] << shift) | ((words[6 - i] >> 1) >> (31 - shift));
    product.push_back(word);
  }
  std::vector<Value> all = product;
  const Value low = m & 0xffffffff, high = m >> 32;
  for (Value& word : all) {
    const Value t = Widen(word) * low + carry;
    word = Narrow(t), carry = t >> 32;
  }
  carry = Like(m, 0);
  for (size_t i = 0; i + 1 < 6; i++) {
    const Value t = Widen(product[i]) * high + Widen(all[i + 1]) + carry;
    all[i + 1] = Narrow(t), carry = t >> 32;
  }
  return all;
}

Turned TurnFar(Value x) {
  Code& c = *x.code;
  const Value bits = Bits(Abs(x)), hidden = c.Integer(Reg::kU64, uint64_t{1} << 52);
  const std::vector<Value> p =
      Product((bits & (hidden - Like(hidden, 1))) | hidden, Narrow(bits >> 52) - 1013);
  const Value top = (Joined(p[5], p[4]) << 2) | Widen(p[3] >> 30);
  const Value rest = (Joined(p[3], p[2]) << 2) | Widen(p[1] >> 30);
  const Value up = top >> 63 == 1, a = Select(up, ~top, top), b = Select(up, ~rest, rest);
  const auto real = [&](Value v, int exponent) {
    return c.Unary(kConvertUToF, Reg::kF64, v) * std::ldexp(1.0, exponent);
  };
  const Value high = real(a >> 38, -26), middle = real(a & 0x3fffffffff, -64), low = real(b, -128);
  const Value r = high * kHalfPiHigh + (high * kHalfPiLow + (middle + low) * kHalfPi);
  const Value n = Widen(p[5] >> 30) + Select(up, Like(a, 1), Like(a, 0));
  const Value back = x < 0;
  return {Select(back, -n, n), Select(up ^ back, -r, r)};
}

// One round of a loop: the code of TurnFar is skipped where it is not needed.
Turned TurnAny(Value x) {
  const Value far = Abs(x) >= 0x1p20;
  const Turned near = TurnNear0(Select(far, Like(x, 0), x));
  const Value one = Like(near.n, 1), zero = Like(near.n, 0);
  const Code::State last = x.code->While(
      {Select(far, one, zero), near.n, near.r}, [](const Code::State& s) { return s[0] != 0; },
      [&](const Code::State&) -> Code::State {
        const Turned t = TurnFar(x);
        return {zero, t.n, t.r};
      });
  return {last[1], last[2]};
}

// sin((n + quarters) pi / 2 + r), for x of this register.
Value SineOf(Value x, const Turned& t, int quarters) {
  const Value n = t.n + quarters, r = x.IsWide() ? t.r : x.code->Unary(kFConvert, Reg::kF32, t.r);
  std::vector<double> sine, cosine;
  double f = 1;
  for (int i = 0; i <= (x.IsWide() ? 20 : 10); f *= ++i)
    (i % 2 ? sine : cosine).push_back((i / 2 % 2 ? -1 : 1) / f);
  const Value u = r * r, y = Select((n & 1) == 1, Horner(u, cosine), Horner(u, sine) * r);
  return Select((n & 2) == 2, -y, y);
}
Value Wide(Value x) { return x.IsWide() ? x : x.code->Unary(kFConvert, Reg::kF64, x); }
Value Turn(Value x, int quarters) {
  const Value y = SineOf(x, TurnAny(Wide(x)), quarters);
  return Select(Abs(x) < Infinite(x), y, Nan(x));
}

}  // namespace

Value Sin(Value x) { return Select(x == 0, x, Turn(x, 0)); }
Value Cos(Value x) { return Turn(x, 1); }
Value SinNear0(Value x) { return SineOf(x, TurnNear0(Wide(x)), 0); }
Value CosNear0(Value x) { return SineOf(x, TurnNear0(Wide(x)), 1); }

}  // namespace keel_spirv
