// parts.cc: splits a placed graph into parts; parts_run.cc runs them. Nodes keep the order that operands and
// effects require; within it, all nodes that can run on the current device precede the first node of another
// device.
#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "kernel/graph/node_effects.h"
#include "kernel/plan/control.h"
#include "kernel/plan/optimize.h"
#include "kernel/plan/place.h"
#include "kernel/plan/variable_steps.h"

namespace keel {
namespace {

using Group = std::vector<const PlacedNode*>;

// Divides the nodes into groups in execution order; each group is on one device.
class Grouping {
 public:
  Grouping(const Graph& graph, const std::vector<PlacedNode>& placed) : placed_(placed) {
    std::vector<size_t> maker(graph.values.size(), kNone);
    uses_.resize(graph.module->variables.size());
    next_.resize(placed.size());
    open_.assign(placed.size(), 0);
    for (size_t i = 0; i < placed.size(); i++) {
      const Node& node = graph.nodes[placed[i].node];
      for (ValueId v : node.in)
        if (v != kNoValue && maker[v] != kNone) Edge(maker[v], i);
      for (ValueId v : node.out) maker[v] = i;
      if (graph.effects.MustRun() ? IsOrdered(graph, node) : HasAnyEffect(graph, node)) Order(graph, node, i);
    }
  }

  std::vector<Group> Run() {
    for (size_t i = 0; i < placed_.size(); i++)
      if (!open_[i]) ready_[placed_[i].device].push(i);
    std::vector<Group> groups;
    while (Device* device = NextDevice()) {
      groups.emplace_back();
      auto& heap = ready_[device];
      while (!heap.empty()) {
        size_t i = heap.top();
        heap.pop();
        groups.back().push_back(&placed_[i]);
        for (size_t n : next_[i])
          if (--open_[n] == 0) ready_[placed_[n].device].push(n);
      }
      // Bodies and constants are lowered in program order.
      std::sort(groups.back().begin(), groups.back().end(),
                [](const PlacedNode* a, const PlacedNode* b) { return a->node < b->node; });
    }
    return groups;
  }

 private:
  static constexpr size_t kNone = ~size_t{0};
  struct Uses {  // of a variable, so far
    size_t write = kNone;
    std::vector<size_t> reads;  // since that write
  };
  void Edge(size_t from, size_t to) {
    if (from == kNone) return;
    next_[from].push_back(to);
    open_[to]++;
  }
  // A read only waits for the last write of its variable. Other nodes with effects, and nodes that may fail,
  // keep their order.
  void Order(const Graph& graph, const Node& node, size_t i) {
    Effects effects = EffectsOf(graph, node);
    if (EffectOf(*node.op) == EffectKind::kRead) {
      Uses& uses = uses_[effects.reads[0]];
      Edge(uses.write, i);
      uses.reads.push_back(i);
      return;
    }
    Edge(std::exchange(last_effect_, i), i);
    for (uint32_t v = 0; v < uses_.size(); v++) {
      if (!effects.host && !std::ranges::binary_search(effects.writes, v)) continue;
      for (size_t read : uses_[v].reads) Edge(read, i);
      uses_[v] = {i, {}};
    }
  }
  // The device of the first ready node.
  Device* NextDevice() {
    Device* best = nullptr;
    size_t first = kNone;
    for (auto& [device, heap] : ready_)
      if (!heap.empty() && heap.top() < first) {
        first = heap.top();
        best = device;
      }
    return best;
  }

  const std::vector<PlacedNode>& placed_;
  size_t last_effect_ = kNone;
  std::vector<Uses> uses_;  // by variable
  std::vector<std::vector<size_t>> next_;
  std::vector<size_t> open_;  // by node: number of unfinished predecessors
  std::map<Device*, std::priority_queue<size_t, std::vector<size_t>, std::greater<>>> ready_;
};

std::string MemoryOf(const Device* device) {
  return device->host_memory() && device != VariableDevice() ? "host" : device->name();
}

class Splitter {
 public:
  Splitter(const Graph& graph, std::span<const ValueId> feeds, std::span<const ValueId> fetches,
           std::span<const NodeId> targets, const Optimizer& optimizer, const PlanOptions& options)
      : graph_(graph),
        feeds_(feeds),
        fetches_(fetches),
        targets_(targets),
        optimizer_(optimizer),
        options_(options) {}

  absl::StatusOr<std::unique_ptr<Parts>> Run(const std::vector<Group>& groups, Device* device) {
    auto parts = std::make_unique<Parts>();
    made_in_.assign(graph_.values.size(), -1);
    feed_of_.assign(graph_.values.size(), kNoValue);
    slot_.assign(graph_.values.size(), kNoValue);
    for (uint32_t i = 0; i < feeds_.size(); i++) feed_of_[feeds_[i]] = i;
    for (size_t g = 0; g < groups.size(); g++)
      for (const PlacedNode* p : groups[g])
        for (ValueId v : graph_.nodes[p->node].out)
          if (feed_of_[v] == kNoValue) made_in_[v] = static_cast<int>(g);
    FindLeaving(groups);
    for (size_t g = 0; g < groups.size(); g++)
      RETURN_IF_ERROR(AddPart(groups[g], static_cast<int>(g), *parts));
    RETURN_IF_ERROR(AddPassthrough(device, *parts));
    for (ValueId v : fetches_) parts->fetches.push_back(Slot(v));
    parts->slots = slots_;
    parts->results_on_device = options_.results_on_device;
    FindLastUses(*parts);
    FindCrossings(*parts);
    return parts;
  }

 private:
  uint32_t Slot(ValueId v) {
    if (slot_[v] == kNoValue) slot_[v] = slots_++;
    return slot_[v];
  }

  // Finds the values that are used outside the group that computes them.
  void FindLeaving(const std::vector<Group>& groups) {
    leaving_.resize(groups.size());
    for (size_t g = 0; g < groups.size(); g++)
      for (const PlacedNode* p : groups[g])
        for (ValueId v : graph_.nodes[p->node].in)
          if (v != kNoValue && made_in_[v] >= 0 && made_in_[v] != static_cast<int>(g))
            leaving_[static_cast<size_t>(made_in_[v])].insert(v);
    for (ValueId v : fetches_)
      if (made_in_[v] >= 0) leaving_[static_cast<size_t>(made_in_[v])].insert(v);
  }

  bool Symbolic(ValueId v) const {
    for (Dim d : graph_.values[v].type.dims)
      if (IsSymbolic(d)) return true;
    return false;
  }

  absl::Status AddPart(const Group& group, int g, Parts& parts) {
    std::set<ValueId> entering;
    for (const PlacedNode* p : group)
      for (ValueId v : graph_.nodes[p->node].in)
        if (v != kNoValue && (feed_of_[v] != kNoValue || (made_in_[v] >= 0 && made_in_[v] != g)))
          entering.insert(v);
    // A fed result of a node of this group is a feed of this part, too.
    for (const PlacedNode* p : group)
      for (ValueId v : graph_.nodes[p->node].out)
        if (feed_of_[v] != kNoValue) entering.insert(v);
    std::vector<NodeId> also;
    for (const PlacedNode* p : group)  // targets, and nodes with effects
      if (MustRun(graph_, graph_.nodes[p->node]) || std::ranges::find(targets_, p->node) != targets_.end())
        also.push_back(p->node);
    const std::set<ValueId>& leaving = leaving_[static_cast<size_t>(g)];
    return Add(group[0]->device, {entering.begin(), entering.end()}, {leaving.begin(), leaving.end()}, also,
               parts);
  }

  absl::Status Add(Device* device, std::vector<ValueId> in, const std::vector<ValueId>& out,
                   const std::vector<NodeId>& also, Parts& parts) {
    size_t used = in.size();
    for (ValueId v : feeds_)  // the numbers of symbols are solved from the feeds of the whole plan
      if (Symbolic(v) && std::find(in.begin(), in.end(), v) == in.end()) in.push_back(v);
    PlanOptions options = options_;
    options.results_on_device = true;
    Parts::Part part{.device = device, .plan = nullptr, .feeds = {}, .results = {}, .last_use = {}};
    part.effects = device != VariableDevice() &&
                   std::ranges::any_of(also, [&](NodeId n) { return MustRun(graph_, graph_.nodes[n]); });
    const Optimizer none{nullptr, {}};
    const Optimizer& optimizer = device == VariableDevice() ? none : optimizer_;
    ASSIGN_OR_RETURN(part.plan, optimizer.Make(graph_, device, in, out, also, options));
    for (size_t i = 0; i < in.size(); i++) {
      bool outside = feed_of_[in[i]] != kNoValue;
      part.feeds.push_back({outside, outside ? feed_of_[in[i]] : Slot(in[i]), i < used});
      if (i < used) entering_.push_back({in[i], parts.parts.size()});
    }
    for (ValueId v : out) part.results.push_back(Slot(v));
    parts.parts.push_back(std::move(part));
    return absl::OkStatus();
  }

  // Adds a part for fetches that no node computes: feeds and constants.
  absl::Status AddPassthrough(Device* device, Parts& parts) {
    std::set<ValueId> passthrough;
    for (ValueId v : fetches_)
      if (made_in_[v] < 0) passthrough.insert(v);
    if (passthrough.empty()) return absl::OkStatus();
    std::vector<ValueId> all(passthrough.begin(), passthrough.end()), in;
    for (ValueId v : all)
      if (feed_of_[v] != kNoValue) in.push_back(v);
    return Add(device, in, all, {}, parts);
  }

  void FindLastUses(Parts& parts) const {
    std::vector<size_t> last(slots_, 0);
    for (size_t p = 0; p < parts.parts.size(); p++)
      for (const Parts::Source& s : parts.parts[p].feeds)
        if (!s.outside) last[s.index] = p;
    for (uint32_t s : parts.fetches) last[s] = parts.parts.size();
    for (uint32_t s = 0; s < slots_; s++)
      if (last[s] < parts.parts.size()) parts.parts[last[s]].last_use.push_back(s);
  }

  // The memory of a variable is known in a run only.
  void FindCrossings(Parts& parts) const {
    std::set<std::pair<ValueId, std::string>> seen;
    const std::string unknown = MemoryOf(VariableDevice());
    auto add = [&](ValueId v, const std::string& from, const std::string& to) {
      if (from == unknown || to == unknown) return;
      if (from != to && seen.insert({v, to}).second) parts.crossings.push_back({v, from, to});
    };
    auto home = [&](ValueId v) {
      return made_in_[v] < 0 ? "host" : MemoryOf(parts.parts[static_cast<size_t>(made_in_[v])].device);
    };
    for (const auto& [v, part] : entering_) add(v, home(v), MemoryOf(parts.parts[part].device));
    if (parts.results_on_device) return;
    for (ValueId v : fetches_) add(v, home(v), "host");
  }

  const Graph& graph_;
  std::span<const ValueId> feeds_, fetches_;
  std::span<const NodeId> targets_;
  const Optimizer& optimizer_;
  const PlanOptions& options_;
  std::vector<int> made_in_;       // by value: the group that computes it; -1: none
  std::vector<uint32_t> feed_of_;  // by value: its feed, or kNoValue
  std::vector<uint32_t> slot_;     // by value: its slot, or kNoValue
  std::vector<std::set<ValueId>> leaving_;
  std::vector<std::pair<ValueId, size_t>> entering_;  // values with the part that uses them
  uint32_t slots_ = 0;
};

}  // namespace

std::shared_ptr<const PassReport> Plan::JoinPasses() const {
  auto all = std::make_shared<PassReport>();
  for (const Parts::Part& part : parts_->parts)
    if (part.plan->options_.passes) all->Add(*part.plan->options_.passes);
  return all;
}

absl::StatusOr<std::shared_ptr<Plan>> Plan::MakePlaced(const Graph& graph, Device* device,
                                                       const Placing& placing, const Optimizer& optimizer,
                                                       std::span<const ValueId> feeds,
                                                       std::span<const ValueId> fetches,
                                                       std::span<const NodeId> targets,
                                                       const PlanOptions& options) {
  std::vector<bool> needed = NeededNodes(graph, feeds, fetches, targets);
  for (NodeId n = 0; n < needed.size(); n++)
    if (needed[n] && CallsEffects(graph, graph.nodes[n])) {
      ASSIGN_OR_RETURN(PlannedGraph flat, WriteOutEffects(graph, device, feeds, fetches, targets));
      return MakePlaced(*flat.graph, device, placing, optimizer, flat.feeds, flat.fetches, flat.targets,
                        options);
    }
  ASSIGN_OR_RETURN(std::vector<PlacedNode> placed,
                   Place(graph, device, placing, options.host, needed, feeds, fetches, targets));
  // An observer sees host copies of values, also of those of variables.
  if (!options.observe)
    for (PlacedNode& p : placed)
      if (p.device == HostDevice() && IsVariableOp(*graph.nodes[p.node].op))
        p.device = VariableDevice(), p.why = "shares arrays";
  std::vector<Group> groups = Grouping(graph, placed).Run();
  bool one = groups.empty() || (groups.size() == 1 && groups[0][0]->device == device);
  std::shared_ptr<Plan> plan;
  auto parts = std::make_unique<Parts>();
  if (one) {
    ASSIGN_OR_RETURN(plan, optimizer.Make(graph, device, feeds, fetches, targets, options));
  } else {
    PlanOptions probe = options;
    probe.observe = probe.probe = true;
    ASSIGN_OR_RETURN(std::unique_ptr<Lowered> whole, Lower(graph, device, feeds, fetches, targets, probe));
    ASSIGN_OR_RETURN(parts, Splitter(graph, feeds, fetches, targets, optimizer, options).Run(groups, device));
    parts->value_of = std::move(whole->value_of);
    parts->sums = std::make_unique<SumPlans>(graph.module->catalogue);
    whole->steps.clear();
    whole->accelerator.reset();
    plan = std::shared_ptr<Plan>(new Plan(std::move(whole), options));
  }
  for (const PlacedNode& p : placed) {
    const Node& node = graph.nodes[p.node];
    parts->rows.push_back({graph.NodeName(p.node), std::string(OpName(*node.op)), p.device->name(), p.why});
  }
  plan->parts_ = std::move(parts);
  if (!one) plan->options_.passes = plan->JoinPasses();
  return plan;
}

}  // namespace keel
