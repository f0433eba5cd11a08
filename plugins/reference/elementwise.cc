// elementwise.cc: broadcasting ops with two and three operands.
//
// Each op is a functor on one element; binary<> iterates over the elements; the table at the end lists the
// ops. A functor with refuses() can fail on its data.
#include <type_traits>

#include "call.h"
#include "families.h"

namespace reference {
namespace {

// ---- arithmetic

struct Add {
  template <Number T>
  T operator()(T a, T b) const {
    return make<T>(arith(a) + arith(b));
  }
};
struct Sub {
  template <Number T>
  T operator()(T a, T b) const {
    return make<T>(arith(a) - arith(b));
  }
};
struct Mul {
  template <Number T>
  T operator()(T a, T b) const {
    return make<T>(arith(a) * arith(b));
  }
};

struct RefusesZero {
  static constexpr const char* kWhy = "integer division by zero";
  template <Integer T>
  static bool refuses(T, T b) {
    return b == 0;
  }
};
// The smallest integer divided by -1 overflows: undefined in C++, wraps in Keel.
template <Integer T>
bool is_minus_one(T b) {
  return std::is_signed_v<T> && b == static_cast<T>(-1);
}
struct Div : RefusesZero {
  template <Integer T>
  T operator()(T a, T b) const {
    return is_minus_one(b) ? make<T>(0 - arith(a)) : static_cast<T>(a / b);
  }
  template <Float T>
  T operator()(T a, T b) const {
    return make<T>(value(a) / value(b));
  }
};
struct Rem : RefusesZero {
  template <Integer T>
  T operator()(T a, T b) const {
    return is_minus_one(b) ? T(0) : static_cast<T>(a % b);
  }
  template <Float T>
  T operator()(T a, T b) const {
    return make<T>(std::fmod(value(a), value(b)));
  }
};
struct Mod : RefusesZero {
  template <Integer T>
  T operator()(T a, T b) const {
    const T r = Rem()(a, b);
    return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
  }
  template <Float T>
  T operator()(T a, T b) const {
    const double y = value(b);
    double r = std::fmod(value(a), y);
    if (r == 0) return make<T>(std::copysign(0.0, y));
    if ((r < 0) != (y < 0)) r += y;  // NaN stays NaN
    return make<T>(r);
  }
};
struct Pow {
  static constexpr const char* kWhy = "zero to a negative integer power";
  template <Integer T>
  static bool refuses(T a, T b) {
    return a == 0 && b < 0;
  }
  template <Integer T>
  T operator()(T a, T b) const {
    if (b < 0) {  // 1 / a^-b is a fraction unless a is 1 or -1
      if (a == 1) return 1;
      return is_minus_one(a) ? make<T>(b % 2 == 0 ? 1 : -1) : T(0);
    }
    uint64_t result = 1, square = arith(a);
    for (uint64_t rest = arith(b); rest != 0; rest /= 2) {  // a^b as the product of a^1, a^2, a^4 ...
      if (rest % 2 == 1) result *= square;
      square *= square;
    }
    return make<T>(result);
  }
  template <Float T>
  T operator()(T a, T b) const {
    const double x = value(a), y = value(b);
    // Zeros, infinities and NaN as C defines them; the C library's long double treats -2^63 as odd.
    if (x == 0 || !std::isfinite(x) || !std::isfinite(y)) return make<T>(std::pow(x, y));
    const bool even = std::fmod(y, 2) == 0;
    return make<T>(std::pow(Math<T>(even ? std::fabs(x) : x), Math<T>(y)));
  }
};
struct Maximum {
  template <Number T>
  T operator()(T a, T b) const {
    return greater_of(a, b);
  }
};
struct Minimum {
  template <Number T>
  T operator()(T a, T b) const {
    return lesser_of(a, b);
  }
};

// ---- comparisons, logic, bits

struct Equal {
  template <class T>
  Bool operator()(T a, T b) const {
    return {value(a) == value(b)};
  }
};
struct NotEqual {
  template <class T>
  Bool operator()(T a, T b) const {
    return {value(a) != value(b)};
  }
};
struct Less {
  template <Number T>
  Bool operator()(T a, T b) const {
    return {value(a) < value(b)};
  }
};
struct LessEqual {
  template <Number T>
  Bool operator()(T a, T b) const {
    return {value(a) <= value(b)};
  }
};
struct Greater {
  template <Number T>
  Bool operator()(T a, T b) const {
    return {value(a) > value(b)};
  }
};
struct GreaterEqual {
  template <Number T>
  Bool operator()(T a, T b) const {
    return {value(a) >= value(b)};
  }
};
struct LogicalAnd {
  Bool operator()(Bool a, Bool b) const { return {value(a) && value(b)}; }
};
struct LogicalOr {
  Bool operator()(Bool a, Bool b) const { return {value(a) || value(b)}; }
};
struct LogicalXor {
  Bool operator()(Bool a, Bool b) const { return {value(a) != value(b)}; }
};
struct BitAnd {
  template <Integer T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct BitOr {
  template <Integer T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct BitXor {
  template <Integer T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
struct ShiftLeft {
  template <Integer T>
  T operator()(T a, T b) const {
    return b < std::numeric_limits<T>::digits ? make<T>(arith(a) << b) : T(0);
  }
};
struct ShiftRight {
  template <Integer T>
  T operator()(T a, T b) const {
    return b < std::numeric_limits<T>::digits ? make<T>(arith(a) >> b) : T(0);
  }
};

// ---- iteration

// The visited dims, and operand i's strides there. A flat call is one row of `count` elements, where an
// operand of one element has stride 0.
Dims visited(const keel_call& c) {
  if (!(c.flags & KEEL_CALL_FLAT)) return dims_of(*c.out[0]);
  Dims row;
  row.push(c.count);
  return row;
}
Dims read_strides(const keel_call& c, int i) {
  if (!(c.flags & KEEL_CALL_FLAT)) return broadcast_strides(dims_of(*c.in[i]), dims_of(*c.out[0]));
  Dims step;
  step.push(c.flags & KEEL_CALL_ONE(i) ? 0 : 1);
  return step;
}

template <class F, Integer T>
keel_rc refuse(const keel_call& c, T a, T b, int64_t at) {
  if constexpr (std::is_signed_v<T>) {
    return fail(c.env->host, KEEL_RANGE, "%s: a is %lld and b is %lld at element %lld", F::kWhy,
                static_cast<long long>(a), static_cast<long long>(b), static_cast<long long>(at));
  } else {
    return fail(c.env->host, KEEL_RANGE, "%s: a is %llu and b is %llu at element %lld", F::kWhy,
                static_cast<unsigned long long>(a), static_cast<unsigned long long>(b),
                static_cast<long long>(at));
  }
}

// Both operands are read before the result is written, so the result may share their memory.
template <class F, class T>
keel_rc binary_loop(const keel_call& c) {
  using Result = decltype(F()(T(), T()));
  const T *a = in<T>(c, 0), *b = in<T>(c, 1);
  Result* y = out<Result>(c);
  const Dims sa = read_strides(c, 0), sb = read_strides(c, 1);
  int64_t at = 0;
  for (Odometer o(visited(c)); o.valid(); o.next(), ++at) {
    const T p = a[dot(o.index, sa)], q = b[dot(o.index, sb)];
    if constexpr (requires { F::refuses(p, q); }) {
      if (F::refuses(p, q)) return refuse<F>(c, p, q, at);
    }
    y[at] = F()(p, q);
  }
  return KEEL_OK;
}
template <class Set, class F>
keel_rc binary(const keel_call& c) {
  return typed<Set>(c, in_type(c), [&](auto tag) { return binary_loop<F, typename decltype(tag)::type>(c); });
}

// Only moves elements, so only their width matters.
template <class Raw>
keel_rc select_loop(const keel_call& c) {
  const Bool* p = in<Bool>(c, 0);
  const Raw *a = in<Raw>(c, 1), *b = in<Raw>(c, 2);
  Raw* y = out<Raw>(c);
  const Dims sp = read_strides(c, 0), sa = read_strides(c, 1), sb = read_strides(c, 2);
  int64_t at = 0;
  for (Odometer o(visited(c)); o.valid(); o.next(), ++at) {
    const bool first = value(p[dot(o.index, sp)]);
    y[at] = first ? a[dot(o.index, sa)] : b[dot(o.index, sb)];
  }
  return KEEL_OK;
}
keel_rc select(const keel_call& c) {
  return typed<Any>(c, in_type(c, 1), [&](auto tag) { return select_loop<typename decltype(tag)::type>(c); });
}

constexpr uint32_t kFlags = KEEL_IMPL_ANY_DIMS | KEEL_IMPL_INPLACE;
constexpr keel_impl kImpls[] = {
    row<binary<Num, Add>>(REFERENCE_OP("add"), kFlags),
    row<binary<Num, Sub>>(REFERENCE_OP("sub"), kFlags),
    row<binary<Num, Mul>>(REFERENCE_OP("mul"), kFlags),
    row<binary<Num, Div>>(REFERENCE_OP("div"), kFlags),
    row<binary<Num, Mod>>(REFERENCE_OP("mod"), kFlags),
    row<binary<Num, Rem>>(REFERENCE_OP("rem"), kFlags),
    row<binary<Num, Pow>>(REFERENCE_OP("pow"), kFlags),
    row<binary<Num, Maximum>>(REFERENCE_OP("maximum"), kFlags),
    row<binary<Num, Minimum>>(REFERENCE_OP("minimum"), kFlags),
    row<binary<Any, Equal>>(REFERENCE_OP("equal"), kFlags),
    row<binary<Any, NotEqual>>(REFERENCE_OP("not_equal"), kFlags),
    row<binary<Num, Less>>(REFERENCE_OP("less"), kFlags),
    row<binary<Num, LessEqual>>(REFERENCE_OP("less_equal"), kFlags),
    row<binary<Num, Greater>>(REFERENCE_OP("greater"), kFlags),
    row<binary<Num, GreaterEqual>>(REFERENCE_OP("greater_equal"), kFlags),
    row<binary<Booleans, LogicalAnd>>(REFERENCE_OP("logical_and"), kFlags),
    row<binary<Booleans, LogicalOr>>(REFERENCE_OP("logical_or"), kFlags),
    row<binary<Booleans, LogicalXor>>(REFERENCE_OP("logical_xor"), kFlags),
    row<binary<Integers, BitAnd>>(REFERENCE_OP("bit_and"), kFlags),
    row<binary<Integers, BitOr>>(REFERENCE_OP("bit_or"), kFlags),
    row<binary<Integers, BitXor>>(REFERENCE_OP("bit_xor"), kFlags),
    row<binary<Unsigned, ShiftLeft>>(REFERENCE_OP("shift_left"), kFlags),
    row<binary<Unsigned, ShiftRight>>(REFERENCE_OP("shift_right"), kFlags),
    row<select>(REFERENCE_OP("select"), kFlags),
};

}  // namespace

std::span<const keel_impl> elementwise_impls() { return kImpls; }

}  // namespace reference
