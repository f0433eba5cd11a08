// motion.cc: hoists loop-invariant nodes out of `while` and `scan`, and removes unused carries, stacked
// results and captures. Applies to loops without effects and variable reads. Hoisted nodes cannot fail, so
// they may also run when the loop has no iteration.
//
// LoopGraph is one graph of the loop and its invariant values; LoopRebuilder decides for a loop and rebuilds
// it.
#include <algorithm>
#include <unordered_set>

#include "plugins/passes/loops/loops.h"
#include "plugins/passes/passes.h"

namespace keel_passes {
namespace {

using Values = std::unordered_set<keel_value>;

// Cheaper than reading its result: stays with its users.
bool is_cheap(std::string_view op) {
  constexpr std::string_view kOps[] = {"reshape", "broadcast_to", "fill",     "tile",
                                       "iota",    "one_hot",      "identity", "slice"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

struct LoopGraph {
  LoopGraph(const Edit& e, int64_t graph, size_t n_params, size_t n_results)
      : graph(graph),
        body(e.body(graph)),
        params(body.params, body.params + n_params),
        results(body.results, body.results + n_results) {}

  // All values that the roots depend on, stopping at `given`.
  Values needs(const Ids& roots, const Ids& given = {}) const {
    Values needed(roots.begin(), roots.end());
    const std::unordered_set<keel_value> known(given.begin(), given.end());
    const std::vector<NodeId> nodes = body.edit.nodes();
    for (size_t i = nodes.size(); i-- > 0;) {
      const Ids out = body.edit.outs(nodes[i]), in = body.edit.ins(nodes[i]);
      const auto asked = [&](keel_value v) { return needed.count(v) != 0 && known.count(v) == 0; };
      if (std::any_of(out.begin(), out.end(), asked)) needed.insert(in.begin(), in.end());
    }
    return needed;
  }

  // Finds the values that depend on invariant values only and that other nodes use.
  void find_invariant(Values fixed) {
    const Edit& b = body.edit;
    const std::vector<NodeId> nodes = b.nodes();
    std::unordered_set<NodeId> moved;
    for (NodeId n : nodes) {
      if (!moves(n, fixed)) continue;
      moved.insert(n);
      for (keel_value v : b.outs(n)) fixed.insert(v);
    }
    for (size_t i = nodes.size(); i-- > 0;)
      if (moved.count(nodes[i]) != 0 && is_cheap(b.op(nodes[i])) && !used_outside(nodes[i], moved).empty())
        moved.erase(nodes[i]);
    for (NodeId n : nodes) {
      if (moved.count(n) == 0) continue;
      const Ids used = used_outside(n, moved);
      hoisted.insert(hoisted.end(), used.begin(), used.end());
    }
  }

  bool moves(NodeId n, const Values& fixed) const {
    const Edit& b = body.edit;
    if (b.effects(n) != 0 || b.is(n, "while")) return false;  // a while may not end
    bool any = false;
    for (keel_value v : b.ins(n)) {
      const bool known = v == KEEL_NO_VALUE || b.constant(v);
      if (!known && fixed.count(v) == 0) return false;
      any = any || !known;
    }
    return any;
  }

  Ids used_outside(NodeId n, const std::unordered_set<NodeId>& moved) const {
    Ids used;
    for (keel_value v : body.edit.outs(n)) {
      const std::vector<NodeId> users = body.edit.users(v);
      if (body.edit.fetched(v) ||
          std::any_of(users.begin(), users.end(), [&](NodeId u) { return moved.count(u) == 0; }))
        used.push_back(v);
    }
    return used;
  }

  int64_t graph;
  Edit::Body body;
  Ids params, results, hoisted;
};

class LoopRebuilder {
 public:
  LoopRebuilder(Edit& e, const Loop& loop)
      : e_(e), loop_(loop), carried_(loop.carry, kCarried), wanted_(loop.out.size(), true) {
    graphs_.emplace_back(e, loop.body, loop.given, loop.out.size());
    if (loop.is_while) graphs_.emplace_back(e, loop.test, loop.given, 1);
  }

  bool run() {
    find_unchanged();
    find_unused();
    for (LoopGraph& side : graphs_) side.find_invariant(unchanging(side));
    find_unread();
    const auto left = std::count(carried_.begin(), carried_.end(), kCarried);
    if (loop_.is_while && left == 0) return false;  // would run forever or never
    return changes() && rebuilt();
  }

 private:
  enum CarryKind { kCarried, kCaptured, kDropped };

  void find_unchanged() {
    for (size_t i = 0; i < loop_.carry; i++)
      if (graphs_[0].results[i] == graphs_[0].params[i] && e_.same_type(loop_.in[i], loop_.out[i]))
        carried_[i] = kCaptured;
  }

  bool used(size_t result) const {
    return e_.fetched(loop_.out[result]) || !e_.users(loop_.out[result]).empty();
  }

  // Carries used only by themselves, and unused stacked results.
  void find_unused() {
    for (size_t i = loop_.carry; i < loop_.out.size(); i++) wanted_[i] = used(i);
    for (size_t i = 0; i < loop_.carry; i++)
      if (carried_[i] == kCarried && !used(i)) carried_[i] = kDropped;
    for (bool again = true; again;) {
      again = false;
      std::vector<Values> needed;
      for (size_t s = 0; s < graphs_.size(); s++)
        needed.push_back(graphs_[s].needs(s == 0 ? results() : graphs_[s].results));
      for (size_t i = 0; i < loop_.carry; i++)
        for (size_t s = 0; s < graphs_.size(); s++)
          if (carried_[i] == kDropped && needed[s].count(graphs_[s].params[i]) != 0)
            carried_[i] = kCarried, again = true;
    }
  }

  // Captures that neither graph reads once the hoisted values are passed in.
  void find_unread() {
    std::vector<Values> needed;
    for (size_t s = 0; s < graphs_.size(); s++)
      needed.push_back(graphs_[s].needs(s == 0 ? results() : graphs_[s].results, graphs_[s].hoisted));
    for (size_t i = 0; i < loop_.cut; i++) {
      if (i < loop_.carry && carried_[i] != kCaptured) continue;
      bool read = false;
      for (size_t s = 0; s < graphs_.size(); s++) read = read || needed[s].count(graphs_[s].params[i]) != 0;
      if (!read) unread_.insert(i);
    }
  }

  // The body's results that the new loop keeps.
  Ids results() const {
    Ids kept;
    for (size_t i = 0; i < loop_.out.size(); i++)
      if (i < loop_.carry ? carried_[i] == kCarried : wanted_[i]) kept.push_back(graphs_[0].results[i]);
    return kept;
  }

  Values unchanging(const LoopGraph& side) const {
    Values fixed;
    for (size_t i = 0; i < loop_.cut; i++)
      if (i >= loop_.carry || carried_[i] == kCaptured) fixed.insert(side.params[i]);
    return fixed;
  }

  bool changes() const {
    return results().size() < loop_.out.size() || !unread_.empty() ||
           std::any_of(graphs_.begin(), graphs_.end(), [](const LoopGraph& s) { return !s.hoisted.empty(); });
  }

  // Indices of the old operands in the order of the new ones; hoisted values follow.
  std::vector<size_t> kept(CarryKind kind) const {
    std::vector<size_t> list;
    for (size_t i = 0; i < loop_.carry; i++)
      if (carried_[i] == kind) list.push_back(i);
    return list;
  }
  std::vector<size_t> before_hoisted() const {
    std::vector<size_t> list = kept(kCarried), captured = kept(kCaptured);
    list.insert(list.end(), captured.begin(), captured.end());
    for (size_t i = loop_.carry; i < loop_.cut; i++) list.push_back(i);
    std::erase_if(list, [&](size_t i) { return unread_.count(i) != 0; });
    return list;
  }

  struct Hoisted {  // the hoisted nodes of one graph
    int64_t graph;
    Ids in;
    InlinedGraph inlined;
  };
  Hoisted hoist(const LoopGraph& side) {
    Ids params, in;
    const Values needed = side.needs(side.hoisted);
    for (size_t i = 0; i < loop_.cut; i++) {
      if (needed.count(side.params[i]) == 0) continue;
      params.push_back(side.params[i]);
      in.push_back(loop_.in[i]);
    }
    const int64_t graph = e_.graph(side.graph, params, in, side.hoisted);
    return {graph, in, apply_graph(e_, graph, in, side.hoisted.size())};
  }

  int64_t graph_of(const LoopGraph& side, const std::vector<Hoisted>& outside, const Ids& results) {
    Ids params, types;
    for (size_t i : before_hoisted()) {
      params.push_back(side.params[i]);
      types.push_back(loop_.in[i]);
    }
    size_t next = 0;
    for (const LoopGraph& from : graphs_) {
      if (from.hoisted.empty()) continue;
      const Hoisted& o = outside[next++];
      for (size_t i = 0; i < from.hoisted.size(); i++) {
        params.push_back(&from == &side ? from.hoisted[i] : KEEL_NO_VALUE);
        types.push_back(o.inlined.out[i]);
      }
    }
    for (size_t i = loop_.cut; i < loop_.given; i++) {
      params.push_back(side.params[i]);
      types.push_back(loop_.in[i]);
    }
    return e_.graph(side.graph, params, types, results);
  }

  Ids operands(const std::vector<Hoisted>& outside) const {
    Ids in;
    for (size_t i : before_hoisted()) in.push_back(loop_.in[i]);
    for (const Hoisted& o : outside) in.insert(in.end(), o.inlined.out.begin(), o.inlined.out.end());
    in.insert(in.end(), loop_.in.begin() + static_cast<ptrdiff_t>(loop_.cut), loop_.in.end());
    return in;
  }

  Ids add_loop(const std::vector<Hoisted>& outside, const Ids& results) {
    const auto carry = static_cast<int64_t>(kept(kCarried).size());
    const keel_attr body = {KEEL_ATTR_GRAPH, 0, graph_of(graphs_[0], outside, results), 0, nullptr};
    const Ids in = operands(outside);
    if (loop_.is_while) {
      const keel_attr test = {KEEL_ATTR_GRAPH, 0, graph_of(graphs_[1], outside, graphs_[1].results), 0,
                              nullptr};
      return e_.add("while", in, Attrs().as("test", test).as("body", body).i("carry", carry), results.size());
    }
    const auto entries = static_cast<int64_t>(loop_.in.size() - loop_.cut);
    Attrs attrs = Attrs()
                      .as("body", body)
                      .i("carry", carry)
                      .i("invariants", static_cast<int64_t>(in.size()) - carry - entries)
                      .flag("reverse", e_.integer(loop_.n, "reverse") != 0)
                      .flag("counted", loop_.counted);
    if (loop_.cut == loop_.given) std::move(attrs).as("length", e_.attr(loop_.n, "length"));
    return e_.add("scan", in, attrs, results.size());
  }

  bool rebuilt() {
    const Ids left = results();
    if (left.empty()) return false;
    e_.at(loop_.n);
    std::vector<Hoisted> outside;
    for (const LoopGraph& side : graphs_)
      if (!side.hoisted.empty()) outside.push_back(hoist(side));
    const Ids made = add_loop(outside, left);
    size_t next = 0;
    for (size_t i = 0; i < loop_.out.size(); i++) {
      const bool stays = i < loop_.carry ? carried_[i] == kCarried : wanted_[i];
      if (stays && !e_.same_type(made[next++], loop_.out[i])) return false;
    }
    next = 0;
    for (size_t i = 0; i < loop_.out.size(); i++) {
      if (i < loop_.carry ? carried_[i] == kCarried : wanted_[i])
        e_.redirect(loop_.out[i], made[next++]);
      else if (i < loop_.carry && carried_[i] == kCaptured && e_.alive(loop_.n))
        e_.redirect(loop_.out[i], loop_.in[i]);
    }
    for (const Hoisted& o : outside) inline_graph(e_, o.inlined, o.graph, o.in);
    return true;
  }

  Edit& e_;
  const Loop& loop_;
  std::vector<LoopGraph> graphs_;  // the body, then the test
  std::vector<CarryKind> carried_;
  std::vector<bool> wanted_;           // by result: stacked results that are kept
  std::unordered_set<size_t> unread_;  // operands
};

bool rebuild_smaller(Edit& e, NodeId n) {
  const Loop loop(e, n);
  return loop.pure && LoopRebuilder(e, loop).run();
}

constexpr Rule kRules[] = {{"while", rebuild_smaller}, {"scan", rebuild_smaller}};

}  // namespace

Rules motion_rules() { return kRules; }

}  // namespace keel_passes
