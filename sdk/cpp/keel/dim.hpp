// dim.hpp: sizes as values: numbers, or expressions of the symbols of a trace.
//
//   auto rows = keel::function("rows", [](const keel::Tensor& x) {
//     return keel::reshape(x, {x.dim(0) * x.dim(1), 10}) + keel::zeros({keel::dim("b") * 2, 10});
//   }, {.signature = "x: f32[b, 2, 10]"});
//
// x.dim(0) is the size of a dim, eagerly a number; keel::dim("b") is a symbol of a signature (or of
// keel_trace_dim). + - * / % combine sizes and numbers; / rounds down. A symbolic size is valid only in its
// trace: as an attribute of an op, or as an operand, where it is a literal.
// Comparisons of sizes, division by a size and number() use the sizes of the call being traced;
// Function::report() lists the conditions that a trace depends on.
#ifndef KEEL_DIM_HPP
#define KEEL_DIM_HPP
#include <algorithm>
#include <concepts>
#include <string>

#include "home.hpp"
#include "keel/keel.h"

namespace keel {

/// A size: a number, or an expression of symbols. Thread-safe as a value; symbolic sizes belong to the thread
/// that writes their trace.
class Dim {
 public:
  Dim(std::integral auto number) : number_(static_cast<int64_t>(number)) {}
  /// From the text of keel_array_dim; an expression is checked at its first use.
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
  /// The size in the call being traced; this trace then treats it as a number. Error KEEL_PRECONDITION if no
  /// call is being traced.
  int64_t number() const {
    if (!symbolic()) return number_;
    int64_t out = 0;
    call(keel_trace_dim_number, need_trace(), text_.c_str(), &out);
    return out;
  }
  /// For attributes: the number, or the handle of the symbol in the trace of this thread.
  keel_dim handle() const {
    if (!symbolic()) return number_;
    keel_dim out = 0;
    call(keel_trace_dim, need_trace(), text_.c_str(), 1, &out);
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

  /// True for all sizes, or in the call being traced; in the second case the trace serves only such calls.
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
  /// As == 0, but false if no call is being traced: then the check is left to the run.
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
    throw Error(KEEL_PRECONDITION, "the size " + text_ + " is symbolic, and this thread writes no trace",
                "x.dim(0) is the size of a tensor's dim, traced or not");
  }
  static Dim fits(bool overflow, const Dim& out) {
    return overflow ? throw Error(KEEL_INVALID, "a size does not fit in 63 bits") : out;
  }
  static Dim of(const Dim& a, const char* op, const Dim& b) {
    return of("(" + a.text() + ")" + op + "(" + b.text() + ")");
  }
  /// libkeel computes the canonical form.
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
  /// Division by a symbol restricts the trace to calls with a nonzero size: then n / n is 1.
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

/// A size by the name of its symbol in this thread's trace, or an expression ("2*b"). Error KEEL_NOT_FOUND
/// lists the symbols.
template <std::convertible_to<std::string> Text>
Dim dim(const Text& name) {
  Dim out = Dim::parse(name);
  out.handle();
  return out + 0;  // in canonical form
}

}  // namespace keel
#endif
