// dim.hpp: sizes of tensors where shapes are asked for: numbers, or expressions in sizes that a trace names.
//
//   auto rows = keel::function("rows", [](const keel::Tensor& x) {
//     return keel::reshape(x, {x.dim(0) * x.dim(1), 10}) + keel::zeros({keel::dim("b") * 2, 10});
//   }, {.signature = "x: f32[b, 2, 10]"});
//
// x.dim(0) is the size of a dim, whatever it is called, eagerly a number; keel::dim("b") one that a signature
// (or keel_trace_dim) named. + - * / % take other sizes and numbers; / rounds down. A size of a trace has
// meaning there only, and wherever ops take a shape or a size: in lists ({b, 10}) and alone.
#ifndef KEEL_DIM_HPP
#define KEEL_DIM_HPP
#include <concepts>
#include <string>

#include "home.hpp"
#include "keel_control.h"

namespace keel {

class Dim {
 public:
  Dim(std::integral auto number) : number_(static_cast<int64_t>(number)) {}
  /// As keel_array_dim gives it; checked where it is used.
  static Dim parse(std::string text) {
    Dim out(0);
    if (text.find_first_not_of("0123456789") == std::string::npos)
      out.number_ = std::stoll(text);
    else
      out.text_ = std::move(text);
    return out;
  }
  bool symbolic() const { return !text_.empty(); }
  /// "2*b+1", "3".
  std::string text() const { return symbolic() ? text_ : std::to_string(number_); }
  /// An Error where only a trace knows it.
  int64_t number() const {
    if (symbolic())
      throw Error(KEEL_PRECONDITION, "the size " + text_ + " of a trace is no number while it is traced",
                  "keel::dim(size) is a tensor that has it when the graph runs");
    return number_;
  }
  /// What attributes hold: the number, or its name in the trace that this thread writes.
  keel_dim handle() const {
    if (!symbolic()) return number_;
    if (!keel_trace_writes(detail::this_trace))
      throw Error(KEEL_PRECONDITION, "the size " + text_ + " has no meaning here: only traces name sizes",
                  "x.dim(0) is the size of a tensor's dim, traced or not");
    keel_dim out = 0;
    call(keel_trace_known_dim, detail::this_trace, text_.c_str(), &out);
    return out;
  }

  friend Dim operator+(const Dim& a, const Dim& b) { return {a, " + ", b, a.number_ + b.number_}; }
  friend Dim operator-(const Dim& a, const Dim& b) { return {a, " - ", b, a.number_ - b.number_}; }
  friend Dim operator*(const Dim& a, const Dim& b) { return {a, " * ", b, a.number_ * b.number_}; }
  friend Dim operator/(const Dim& a, const Dim& b) { return {a, " // ", b, floor(a, b)}; }
  friend Dim operator%(const Dim& a, const Dim& b) {
    return {a, " % ", b, a.number_ - floor(a, b) * b.number_};
  }

 private:
  Dim(const Dim& a, const char* op, const Dim& b, int64_t number) : number_(number) {
    if (a.symbolic() || b.symbolic()) text_ = "(" + a.text() + op + b.text() + ")";
  }
  static int64_t floor(const Dim& a, const Dim& b) {
    if (b.symbolic()) return 0;
    if (!b.number_) throw Error(KEEL_INVALID, "the size " + a.text() + " is divided by 0");
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
  return out;
}

}  // namespace keel
#endif
