// loop.cc: a condition that is known gives way to the branch that it takes. Only nodes without effects, but
// for reading variables: what must run stays where it is listed.
#include "numbers.h"
#include "passes.h"

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
  if (!i || *i < 0 || *i >= static_cast<double>(branches.size())) return false;  // it fails in the run
  return e.splice(n, branches[static_cast<size_t>(*i)], without_first(e, n));
}

constexpr Rule kRules[] = {{"cond", known_cond}, {"switch", known_switch}};

}  // namespace

void loop(Edit& e) { apply(e, {kRules}); }

}  // namespace keel_passes
