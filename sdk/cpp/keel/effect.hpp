// effect.hpp: print() and assert_(), in program order, in traced and in eager programs.
//
//   keel::print("step {}: loss {}", {step, loss});
//   keel::assert_(loss < 1000, "the loss exploded", {loss});
#ifndef KEEL_EFFECT_HPP
#define KEEL_EFFECT_HPP
#include "keel/ops.hpp"

namespace keel {

struct PrintOptions {
  bool out = false;  // stdout instead of stderr; the hook of the context receives both
  int64_t edge = 3;  // elements shown at both ends of each dim; -1: all
};
/// Prints one line when the program reaches this point, traced or not: `format` with each {} replaced by the
/// next of x.
inline void print(const std::string& format, std::initializer_list<Operand> x = {},
                  const PrintOptions& o = {}, const Place& where = Place::current()) {
  detail::Attributes at;
  if (!format.empty()) at.text("format", format.c_str());
  if (o.out) at.text("stream", "out");
  if (o.edge != 3) at.i64("edge", o.edge);
  detail::apply(OpId::print, Operands(x).all(), at, {}, where);
}
inline void print(const Tensor& x, const Place& where = Place::current()) {
  print("", {Operand(x, where)}, {}, where);
}

/// If ok, a bool[], is false, the program fails with the message and x before any later effect.
inline void assert_(const Operand& ok, const std::string& message = "",
                    std::initializer_list<Operand> x = {}) {
  detail::Attributes at;
  if (!message.empty()) at.text("message", message.c_str());
  std::vector<const Operand*> all{&ok};
  for (const Operand& operand : x) all.push_back(&operand);
  detail::apply(OpId::assert, all, at, {}, ok.where());
}

}  // namespace keel
#endif
