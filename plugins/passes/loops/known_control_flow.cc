// known_control_flow.cc: rules for branches and loops whose control flow is known: one branch, no iteration,
// or one. Nodes listed as effects must run and stay.
#include <algorithm>

#include "plugins/passes/edit/numbers.h"
#include "plugins/passes/loops/loops.h"
#include "plugins/passes/passes.h"

namespace keel_passes {
namespace {

Ids without_first(const Edit& e, NodeId n) {
  Ids in = e.ins(n);
  in.erase(in.begin());
  return in;
}

bool known_cond(Edit& e, NodeId n) {
  const std::optional<double> p = uniform(e, e.in(n, 0));
  return p && e.splice(n, e.integer(n, *p != 0 ? "then" : "else"), without_first(e, n));
}

bool known_switch(Edit& e, NodeId n) {
  const std::optional<double> i = uniform(e, e.in(n, 0));
  const Ints branches = e.list(n, "branches");
  if (!i || *i < 0 || *i >= static_cast<double>(branches.size())) return false;  // fails in the run
  return e.splice(n, branches[static_cast<size_t>(*i)], without_first(e, n));
}

// Whether all sizes of a graph are numbers, and so have been checked. Symbolic sizes are checked in the run
// even if the graph does not run; such checks must not disappear.
bool sized(const Edit::Body& body) {
  const auto known = [&](keel_value v) {
    if (v == KEEL_NO_VALUE) return true;
    const Dims dims = body.edit.type(v).dims;
    return std::all_of(dims.begin(), dims.end(), is_number);
  };
  const auto all_known = [&](const Ids& values) { return std::all_of(values.begin(), values.end(), known); };
  const std::vector<NodeId> nodes = body.edit.nodes();
  return std::all_of(nodes.begin(), nodes.end(),
                     [&](NodeId n) { return all_known(body.edit.ins(n)) && all_known(body.edit.outs(n)); });
}

// Replaces the loop by its initial values.
bool forwarded(Edit& e, const Loop& loop) {
  for (size_t i = 0; i < loop.carry; i++)
    if (!e.same_type(loop.out[i], loop.in[i])) return false;
  bool all = true;
  for (size_t i = 0; i < loop.carry; i++) all = e.redirect(loop.out[i], loop.in[i]) && all;
  return all;
}

bool known_while(Edit& e, NodeId n) {
  const Loop loop(e, n);
  if ((e.effects(n) & KEEL_MUST_RUN) != 0) return false;
  const Edit::Body test = e.body(loop.test), body = e.body(loop.body);
  Numbers now;
  for (keel_value v : loop.in) now.push_back(e.type(v).rank() == 0 ? uniform(e, v) : std::nullopt);
  const std::optional<double> first = number_of(test, test.results[0], now);
  if (!first) return false;
  if (*first == 0) return sized(test) && sized(body) && forwarded(e, loop);
  Numbers next = now;
  for (size_t i = 0; i < loop.carry; i++) next[i] = number_of(body, body.results[i], now);
  const std::optional<double> second = number_of(test, test.results[0], next);
  return second && *second == 0 && e.splice(n, loop.body, loop.in);
}

Dims entry_dims(const Edit& e, keel_value v) {
  Dims dims = e.type(v).dims;
  dims.erase(dims.begin());
  return dims;
}

bool no_entries(Edit& e, const Loop& loop) {
  if (!sized(e.body(loop.body))) return false;
  const uint64_t nothing = 0;
  Ids empty;
  for (size_t i = loop.carry; i < loop.out.size(); i++) {
    const Type type = e.type(loop.out[i]);
    if (type.count() != 0) return false;
    empty.push_back(e.constant(type.dtype, type.dims, &nothing));
  }
  if (!forwarded(e, loop)) return false;
  for (size_t i = 0; i < empty.size(); i++)
    if (e.alive(loop.n)) e.redirect(loop.out[loop.carry + i], empty[i]);
  return true;
}

bool one_entry(Edit& e, const Loop& loop) {
  if (!loop.pure) return false;
  e.at(loop.n);
  Ids in(loop.in.begin(), loop.in.begin() + static_cast<ptrdiff_t>(loop.cut));
  for (size_t i = loop.cut; i < loop.given; i++)
    in.push_back(e.add("reshape", {loop.in[i]}, Attrs().dims("to", entry_dims(e, loop.in[i]))));
  const InlinedGraph inlined = apply_graph(e, loop.body, in, loop.out.size());
  Ids out = inlined.out;
  for (size_t i = 0; i < out.size(); i++) {
    if (i >= loop.carry) out[i] = e.add("reshape", {out[i]}, Attrs().dims("to", e.type(loop.out[i]).dims));
    if (!e.same_type(out[i], loop.out[i])) return false;
  }
  for (size_t i = 0; i < out.size(); i++) e.redirect(loop.out[i], out[i]);
  inline_graph(e, inlined, loop.body, in);
  return true;
}

bool known_scan(Edit& e, NodeId n) {
  const Loop loop(e, n);
  const int64_t length = e.integer(n, "length");
  if (loop.counted || (e.effects(n) & KEEL_MUST_RUN) != 0) return false;
  return length == 0 ? no_entries(e, loop) : length == 1 && one_entry(e, loop);
}

constexpr Rule kRules[] = {
    {"cond", known_cond}, {"switch", known_switch}, {"while", known_while}, {"scan", known_scan}};

}  // namespace

Rules known_control_flow_rules() { return kRules; }

}  // namespace keel_passes
