// dim.hpp: sizes of tensors where shapes are asked for: numbers, or expressions in sizes that a trace names.
//
//   auto rows = keel::function("rows", [](const keel::Tensor& x) {
//     return keel::reshape(x, {x.dim(0) * x.dim(1), 10}) + keel::zeros({keel::dim("b") * 2, 10});
//   }, {.signature = "x: f32[b, 2, 10]"});
//
// x.dim(0) is the size of a dim, whatever it is called, eagerly a number; keel::dim("b") one that a signature
// (or keel_trace_dim) named. + - * / % take other sizes and numbers; / rounds down. A size of a trace has
// meaning there only: wherever ops take a shape or a size, and beside tensors, where it is a literal.
// Comparing sizes, dividing by one, and number() answer for the call that is traced: Function::report() has
// what a trace relies on.
#ifndef KEEL_DIM_HPP
#define KEEL_DIM_HPP
#include <algorithm>
#include <concepts>
#include <string>

#include "home.hpp"
#include "keel/keel.h"

namespace keel {

class Dim {
 public:
  Dim(std::integral auto number) : number_(static_cast<int64_t>(number)) {}
  /// As keel_array_dim gives it; checked where it is used.
  static Dim parse(std::string text) {
    Dim out(0);
    if (text.find_first_not_of("0123456789", text.starts_with('-')) == std::string::npos)
      out.number_ = std::stoll(text);
    else
      out.text_ = std::move(text);
    return out;
  }
  bool symbolic() const { return !text_.empty(); }
  /// "2*b+1", "3". In a trace equal sizes have equal texts.
  std::string text() const { return symbolic() ? text_ : std::to_string(number_); }
  /// That of the call which is traced: then this size is a number in the trace, not a symbol. An Error where
  /// no call is traced.
  int64_t number() const {
    if (!symbolic()) return number_;
    int64_t out = 0;
    call(keel_trace_dim_number, need_trace(), text_.c_str(), &out);
    return out;
  }
  /// What attributes hold: the number, or its name in the trace that this thread writes.
  keel_dim handle() const {
    if (!symbolic()) return number_;
    keel_dim out = 0;
    call(keel_trace_known_dim, need_trace(), text_.c_str(), &out);
    return out;
  }

  friend Dim operator+(const Dim& a, const Dim& b) {
    Dim out(0);
    return either(a, b) ? of(a, " + ", b)
                        : fits(__builtin_add_overflow(a.number_, b.number_, &out.number_), out);
  }
  friend Dim operator-(const Dim& a, const Dim& b) {
    Dim out(0);
    return either(a, b) ? of(a, " - ", b)
                        : fits(__builtin_sub_overflow(a.number_, b.number_, &out.number_), out);
  }
  friend Dim operator*(const Dim& a, const Dim& b) {
    Dim out(0);
    return either(a, b) ? of(a, " * ", b)
                        : fits(__builtin_mul_overflow(a.number_, b.number_, &out.number_), out);
  }
  friend Dim operator/(const Dim& a, const Dim& b) {
    check_divisor(a, b);
    return either(a, b) ? of(a, " // ", b) : Dim(floor(a, b));
  }
  friend Dim operator%(const Dim& a, const Dim& b) {
    check_divisor(a, b);
    return either(a, b) ? of(a, " % ", b) : Dim(a.number_ - floor(a, b) * b.number_);
  }
  friend Dim operator-(const Dim& a) { return Dim(0) - a; }
  friend Dim max(const Dim& a, const Dim& b) {
    return either(a, b) ? of("max(" + a.text() + ", " + b.text() + ")") : Dim(std::max(a.number_, b.number_));
  }
  friend Dim min(const Dim& a, const Dim& b) {
    return either(a, b) ? of("min(" + a.text() + ", " + b.text() + ")") : Dim(std::min(a.number_, b.number_));
  }

  /// Known for all sizes, or so in the call that is traced; then the trace serves such calls only.
  friend bool operator==(const Dim& a, const Dim& b) {
    return either(a, b) ? holds(a, " == ", b) : a.number_ == b.number_;
  }
  friend bool operator<=(const Dim& a, const Dim& b) {
    return either(a, b) ? holds(a, " <= ", b) : a.number_ <= b.number_;
  }
  friend bool operator!=(const Dim& a, const Dim& b) { return !(a == b); }
  friend bool operator>=(const Dim& a, const Dim& b) { return b <= a; }
  friend bool operator<(const Dim& a, const Dim& b) { return !(b <= a); }
  friend bool operator>(const Dim& a, const Dim& b) { return !(a <= b); }
  /// As == 0, but false where no call is traced: then a run tells.
  bool is_zero() const {
    int32_t zero = !symbolic() && number_ == 0;
    keel_error* why = nullptr;
    if (symbolic() && detail::writes() &&
        keel_trace_dim_holds(detail::this_trace, (text_ + " == 0").c_str(), &zero, &why) != KEEL_OK)
      keel_error_free(why);
    return zero != 0;
  }

 private:
  static bool either(const Dim& a, const Dim& b) { return a.symbolic() || b.symbolic(); }
  keel_trace* need_trace() const {
    if (detail::writes()) return detail::this_trace;
    throw Error(KEEL_PRECONDITION, "the size " + text_ + " has no meaning here: only traces name sizes",
                "x.dim(0) is the size of a tensor's dim, traced or not");
  }
  static Dim fits(bool overflow, const Dim& out) {
    return overflow ? throw Error(KEEL_INVALID, "a size does not fit in 63 bits") : out;
  }
  static Dim of(const Dim& a, const char* op, const Dim& b) {
    return of("(" + a.text() + ")" + op + "(" + b.text() + ")");
  }
  /// libkeel computes: of what the trace knows it makes the canonical form.
  static Dim of(std::string expression) {
    if (!detail::writes()) return parse(std::move(expression));
    keel_text* out = nullptr;
    call(keel_trace_dim_text, detail::this_trace, expression.c_str(), &out);
    return parse(take_text(out));
  }
  static bool holds(const Dim& a, const char* op, const Dim& b) {
    int32_t out = 0;
    call(keel_trace_dim_holds, (a.symbolic() ? a : b).need_trace(), (a.text() + op + b.text()).c_str(), &out);
    return out != 0;
  }
  /// A symbol that is divided by becomes one that is not 0: n / n is 1 for all others.
  static void check_divisor(const Dim& a, const Dim& b) {
    if (b.is_zero()) throw Error(KEEL_INVALID, "the size " + a.text() + " is divided by 0");
  }
  static int64_t floor(const Dim& a, const Dim& b) {
    if (b.number_ == -1) return (Dim(0) - a).number_;
    return a.number_ / b.number_ - (a.number_ % b.number_ != 0 && (a.number_ < 0) != (b.number_ < 0));
  }
  int64_t number_;
  std::string text_;  // empty: the number
};

/// A size by its name in the trace, or an expression ("2*b"). An Error names one that is not there, and those
/// that are.
template <std::convertible_to<std::string> Text>
Dim dim(const Text& name) {
  Dim out = Dim::parse(name);
  out.handle();
  return out + 0;  // in canonical form
}

}  // namespace keel
#endif
