// unary.cc: elementwise ops with one operand, and cast.
//
// Each op is a functor; unary<> iterates over the elements. Math functions are computed in double (f64: long
// double), then rounded. sqrt and 1 / x are correctly rounded in double, so f64 uses double for them: long
// double would round twice.
#include <numbers>
#include <type_traits>

#include "call.h"
#include "families.h"

namespace reference {
namespace {

// F(x) computed in Math<T>, for floats.
template <auto F>
struct MathOf {
  template <Float T>
  T operator()(T x) const {
    return make<T>(F(Math<T>(value(x))));
  }
};
// The same in double.
template <auto F>
struct NearestOf {
  template <Float T>
  T operator()(T x) const {
    return make<T>(F(value(x)));
  }
};
constexpr auto kSqrt = [](auto x) { return std::sqrt(x); };
constexpr auto kRsqrt = [](auto x) { return 1 / std::sqrt(x); };
constexpr auto kReciprocal = [](auto x) { return 1 / x; };
constexpr auto kExp = [](auto x) { return std::exp(x); };
constexpr auto kLog = [](auto x) { return std::log(x); };
constexpr auto kLog1p = [](auto x) { return std::log1p(x); };
constexpr auto kSin = [](auto x) { return std::sin(x); };
constexpr auto kCos = [](auto x) { return std::cos(x); };
constexpr auto kTanh = [](auto x) { return std::tanh(x); };
constexpr auto kErf = [](auto x) { return std::erf(x); };
constexpr auto kFloor = [](auto x) { return std::floor(x); };
constexpr auto kCeil = [](auto x) { return std::ceil(x); };
constexpr auto kRound = [](auto x) { return std::nearbyint(x); };  // ties to even

// Composites whose bodies lose precision for small results.
constexpr auto kSigmoid = [](auto x) { return 1 / (1 + std::exp(-x)); };
constexpr auto kGelu = [](auto x) { return x * std::erfc(-x / std::sqrt(decltype(x)(2))) / 2; };
constexpr auto kGeluTanh = [](auto x) {
  const auto root = std::sqrt(2 / std::numbers::pi_v<decltype(x)>);
  return x * kSigmoid(2 * root * (x + decltype(x)(0.044715L) * x * x * x));
};
struct GeluState {
  bool tanh;
  void read(Attributes& a) { tanh = a.boolean("tanh"); }
};

struct Neg {
  template <Integer T>
  T operator()(T x) const {
    return make<T>(0 - arith(x));
  }
  template <Float T>
  T operator()(T x) const {
    return make<T>(-value(x));
  }
};
struct Abs {
  template <Integer T>
  T operator()(T x) const {
    return x < 0 ? Neg()(x) : x;
  }
  template <Float T>
  T operator()(T x) const {
    return make<T>(std::fabs(value(x)));
  }
};
struct Sign {  // a zero and a NaN are returned unchanged
  template <Number T>
  T operator()(T x) const {
    if (value(x) > 0) return make<T>(1.0);
    return value(x) < 0 ? make<T>(-1.0) : x;
  }
};
struct Relu {
  template <Number T>
  T operator()(T x) const {
    return is_nan(x) || value(x) > 0 ? x : make<T>(0.0);
  }
};
struct IsNan {
  template <Float T>
  Bool operator()(T x) const {
    return {std::isnan(value(x))};
  }
};
struct IsInf {
  template <Float T>
  Bool operator()(T x) const {
    return {std::isinf(value(x))};
  }
};
struct IsFinite {
  template <Float T>
  Bool operator()(T x) const {
    return {std::isfinite(value(x))};
  }
};
struct LogicalNot {
  Bool operator()(Bool x) const { return {!value(x)}; }
};
struct BitNot {
  template <Integer T>
  T operator()(T x) const {
    return make<T>(~arith(x));
  }
};

int64_t elements(const keel_call& c) { return c.flags & KEEL_CALL_FLAT ? c.count : keel_count(c.out[0]); }

template <class F, class T>
keel_rc unary_loop(const keel_call& c) {
  using Result = decltype(F()(T()));
  const T* x = in<T>(c, 0);
  Result* y = out<Result>(c);
  const int64_t n = elements(c);
  for (int64_t i = 0; i < n; ++i) y[i] = F()(x[i]);
  return KEEL_OK;
}
template <class Set, class F>
keel_rc unary(const keel_call& c) {
  return typed<Set>(c, in_type(c), [&](auto tag) { return unary_loop<F, typename decltype(tag)::type>(c); });
}

keel_rc gelu(const GeluState& s, const keel_call& c) {
  return s.tanh ? unary<Floats, MathOf<kGeluTanh>>(c) : unary<Floats, MathOf<kGelu>>(c);
}

constexpr uint32_t kFlags = KEEL_IMPL_ANY_DIMS | KEEL_IMPL_INPLACE;
constexpr keel_impl kImpls[] = {
    row<unary<Booleans, LogicalNot>>(REFERENCE_OP("logical_not"), kFlags),
    row<unary<Integers, BitNot>>(REFERENCE_OP("bit_not"), kFlags),
    row<unary<Num, Neg>>(REFERENCE_OP("neg"), kFlags),
    row<unary<Num, Abs>>(REFERENCE_OP("abs"), kFlags),
    row<unary<Num, Sign>>(REFERENCE_OP("sign"), kFlags),
    row<unary<Floats, NearestOf<kSqrt>>>(REFERENCE_OP("sqrt"), kFlags),
    row<unary<Floats, MathOf<kRsqrt>>>(REFERENCE_OP("rsqrt"), kFlags),
    row<unary<Floats, NearestOf<kReciprocal>>>(REFERENCE_OP("reciprocal"), kFlags),
    row<unary<Floats, MathOf<kExp>>>(REFERENCE_OP("exp"), kFlags),
    row<unary<Floats, MathOf<kLog>>>(REFERENCE_OP("log"), kFlags),
    row<unary<Floats, MathOf<kLog1p>>>(REFERENCE_OP("log1p"), kFlags),
    row<unary<Floats, MathOf<kSin>>>(REFERENCE_OP("sin"), kFlags),
    row<unary<Floats, MathOf<kCos>>>(REFERENCE_OP("cos"), kFlags),
    row<unary<Floats, MathOf<kTanh>>>(REFERENCE_OP("tanh"), kFlags),
    row<unary<Floats, MathOf<kErf>>>(REFERENCE_OP("erf"), kFlags),
    row<GeluState, gelu>(REFERENCE_OP("gelu"), kFlags),
    row<unary<Floats, MathOf<kFloor>>>(REFERENCE_OP("floor"), kFlags),
    row<unary<Floats, MathOf<kCeil>>>(REFERENCE_OP("ceil"), kFlags),
    row<unary<Floats, MathOf<kRound>>>(REFERENCE_OP("round"), kFlags),
    row<unary<SignedOrFloat, Relu>>(REFERENCE_OP("relu"), kFlags),
    row<unary<Floats, IsNan>>(REFERENCE_OP("is_nan"), kFlags),
    row<unary<Floats, IsInf>>(REFERENCE_OP("is_inf"), kFlags),
    row<unary<Floats, IsFinite>>(REFERENCE_OP("is_finite"), kFlags),
};

}  // namespace

std::span<const keel_impl> unary_impls() { return kImpls; }

}  // namespace reference
