// loops.cc: see loops.h.
#include "plugins/passes/loops/loops.h"

#include <algorithm>

#include "plugins/passes/edit/numbers.h"

namespace keel_passes {

Loop::Loop(const Edit& e, NodeId node)
    : n(node),
      is_while(e.is(n, "while")),
      carry(static_cast<size_t>(e.integer(n, "carry"))),
      body(e.integer(n, "body")),
      in(e.ins(n)),
      out(e.outs(n)),
      pure((e.effects(n) & (KEEL_READS | KEEL_MUST_RUN)) == 0) {
  counted = !is_while && e.integer(n, "counted") != 0;
  given = in.size() - (counted ? 1 : 0);
  cut = is_while ? given : carry + static_cast<size_t>(e.integer(n, "invariants"));
  if (is_while) test = e.integer(n, "test");
}

InlinedGraph apply_graph(Edit& e, int64_t graph, const Ids& in, size_t results) {
  const uint8_t yes = 1;
  Ids with = {e.constant(KEEL_BOOL, {}, &yes)};
  with.insert(with.end(), in.begin(), in.end());
  const keel_attr body = {KEEL_ATTR_GRAPH, 0, graph, 0, nullptr};
  InlinedGraph inlined = {kNone, e.add("cond", with, Attrs().as("then", body).as("else", body), results)};
  inlined.node = e.producer(inlined.out[0]);
  return inlined;
}

void inline_graph(Edit& e, const InlinedGraph& inlined, int64_t graph, const Ids& in) {
  if (e.alive(inlined.node)) e.splice(inlined.node, graph, in);
}

namespace {

constexpr double kMost = 2147483647;  // integers that every counter dtype holds

bool compares(std::string_view op, double a, double b) {
  return op == "less" ? a < b : op == "less_equal" ? a <= b : op == "greater" ? a > b : a >= b;
}

std::optional<double> computed(std::string_view op, bool whole, double a, double b) {
  if (op == "equal") return a == b;
  if (op == "not_equal") return a != b;
  if (op == "logical_and") return a != 0 && b != 0;
  if (op == "logical_or") return a != 0 || b != 0;
  if (op == "add" || op == "sub") {
    const double sum = op == "add" ? a + b : a - b;
    if (!whole || sum > kMost || sum < -kMost) return std::nullopt;
    return sum;
  }
  if (op == "less" || op == "less_equal" || op == "greater" || op == "greater_equal")
    return compares(op, a, b);
  return std::nullopt;
}

}  // namespace

std::optional<double> number_of(const Edit::Body& body, keel_value v, const Numbers& params, int depth) {
  constexpr int kDeepest = 8;
  const Edit& e = body.edit;
  for (size_t i = 0; i < params.size(); i++)
    if (body.params[i] == v) return params[i];
  if (v == KEEL_NO_VALUE || e.type(v).rank() != 0 || depth > kDeepest) return std::nullopt;
  const NodeId n = e.producer(v);
  if (n == kNone) return uniform(e, v);
  const Ids in = e.ins(n);
  if (in.empty() || in.size() > 2) return std::nullopt;
  const std::optional<double> a = number_of(body, in[0], params, depth + 1);
  if (in.size() == 1) return a && e.is(n, "logical_not") ? std::optional<double>(*a == 0) : std::nullopt;
  const std::optional<double> b = number_of(body, in[1], params, depth + 1);
  if (!a || !b) return std::nullopt;
  const keel_dt dtype = e.type(in[0]).dtype;
  return computed(e.op(n), dtype == KEEL_I32 || dtype == KEEL_I64, *a, *b);
}

}  // namespace keel_passes
