// within.cc: the reverse of ahead.cc, for devices that take the steps of a scan as one launch: products of
// all entries by constant weights return into the scan. Such a device makes them a few steps at a time, so
// they stay in a cache, and while it waits for the weights of other products.
//
// A call of one step, its nodes applied to values of the right types, shows whether the device takes a step.
// If so, the graph of the call is the new scan's body.
#include <algorithm>

#include "plugins/passes/loops/loops.h"
#include "plugins/passes/passes.h"

namespace keel_passes {
namespace {

// A scanned operand that is the product of all entries of x, [entries, rows, columns], by constant weights.
NodeId product_of(const Edit& e, const Loop& loop, size_t i) {
  const NodeId n = e.made_by(loop.in[i], "matmul");
  if (n == kNone || !e.single_use(loop.in[i]) || e.integer(n, "ta") != 0) return kNone;
  const Type x = e.type(e.in(n, 0)), weights = e.type(e.in(n, 1));
  return x.rank() == 3 && weights.rank() == 2 && weights.data != nullptr ? n : kNone;
}

// A step of a scan in the scan's own graph, applied to zeros in place of the body's parameters.
class Step {
 public:
  Step(Edit& e, const Loop& loop) : e_(e), loop_(loop) {
    e.at(loop.n);
    const std::vector<NodeId> before = e.nodes();
    Ids in;
    for (size_t i = 0; i < loop.given; i++) in.push_back(operand(i));
    const InlinedGraph applied = apply_graph(e, loop.body, in, loop.out.size());
    for (keel_value v : applied.out) ends_.push_back(e.producer(e.add("stop_gradient", {v})));
    inline_graph(e, applied, loop.body, in);
    std::vector<NodeId> nodes;
    for (NodeId n : e.nodes())
      if (!contains(before, n) && !contains(stand_ins_, n) && !contains(ends_, n)) nodes.push_back(n);
    call_ = e.outline(nodes, "step");
  }
  // Whether the device takes it; if not, the graph is as it was.
  bool supported() {
    if (call_ == kNone) return false;
    if (e_.supported(call_)) return true;
    e_.inlined(call_);
    return false;
  }
  // The results of a scan of it; none: a result is a parameter.
  Ids scan() {
    const Ids given = e_.ins(call_), made = e_.outs(call_);
    const int64_t graph = e_.integer(call_, "body");
    const Edit::Body body = e_.body(graph);
    Ids in, params, types, results;
    const auto add = [&](keel_value operand, keel_value stand_in) {
      const auto at = std::find(given.begin(), given.end(), stand_in);
      in.push_back(operand), types.push_back(stand_in);
      params.push_back(at == given.end() ? KEEL_NO_VALUE : body.params[at - given.begin()]);
    };
    for (size_t i = 0; i < loop_.carry; i++) add(loop_.in[i], stood_[i].stand_in);
    for (keel_value v : given)
      if (e_.producer(v) == kNone || !contains(stand_ins_, e_.producer(v))) add(v, v);
    const size_t cut = in.size();
    for (size_t i = loop_.carry; i < stood_.size(); i++) add(stood_[i].operand, stood_[i].stand_in);
    for (NodeId end : ends_) {
      const auto at = std::find(made.begin(), made.end(), e_.in(end, 0));
      if (at == made.end()) return {};
      results.push_back(body.results[at - made.begin()]);
    }
    const int64_t steps = e_.graph(graph, params, types, results);
    const Attrs attrs = Attrs()
                            .as("body", {KEEL_ATTR_GRAPH, 0, steps, 0, nullptr})
                            .i("carry", static_cast<int64_t>(loop_.carry))
                            .i("invariants", static_cast<int64_t>(cut - loop_.carry))
                            .flag("reverse", e_.integer(loop_.n, "reverse") != 0);
    return e_.add("scan", in, attrs, loop_.out.size());
  }

 private:
  struct Stood {
    keel_value operand, stand_in;
  };
  static bool contains(const std::vector<NodeId>& nodes, NodeId n) {
    return std::find(nodes.begin(), nodes.end(), n) != nodes.end();
  }
  // The body's parameter for operand i of the scan.
  keel_value operand(size_t i) {
    const keel_value v = loop_.in[i];
    if (i >= loop_.carry && i < loop_.cut) return v;
    const NodeId n = i < loop_.cut ? kNone : product_of(e_, loop_, i);
    if (n == kNone) return stand_in(v, i >= loop_.cut);
    const keel_value x = stand_in(e_.in(n, 0), true);
    return e_.add("matmul", {x, e_.in(n, 1)}, Attrs().as("tb", e_.attr(n, "tb")));
  }
  // One for each carried value; for scanned operands one for all their uses.
  keel_value stand_in(keel_value operand, bool entry) {
    for (size_t i = loop_.carry; entry && i < stood_.size(); i++)
      if (stood_[i].operand == operand) return stood_[i].stand_in;
    const Type t = e_.type(operand);
    const uint64_t zero[2] = {};
    const Dims dims(t.dims.begin() + (entry ? 1 : 0), t.dims.end());
    const keel_value v = e_.add("fill", {e_.constant(t.dtype, {}, zero)}, Attrs().dims("dims", dims));
    stood_.push_back({operand, v});
    stand_ins_.push_back(e_.producer(v));
    return v;
  }

  Edit& e_;
  const Loop& loop_;
  std::vector<Stood> stood_;  // the carried values first
  std::vector<NodeId> stand_ins_, ends_;
  NodeId call_ = kNone;
};

void within(Edit& e, NodeId n) {
  const Loop loop(e, n);
  if (!loop.pure || loop.counted || loop.carry == 0) return;
  bool multiplies = false;
  for (size_t i = loop.cut; i < loop.given; i++) multiplies |= product_of(e, loop, i) != kNone;
  if (!multiplies) return;
  Step step(e, loop);
  if (!step.supported()) return;
  const Ids made = step.scan();
  for (size_t i = 0; i < made.size(); i++) e.redirect(loop.out[i], made[i]);
}

}  // namespace

void within(Edit& e) {
  for (NodeId n : e.nodes())
    if (e.alive(n) && e.is(n, "scan")) within(e, n);
}

}  // namespace keel_passes
