// parts.cc: splits a placed graph into parts, and reports them; parts_run.cc runs them. Nodes keep the order
// that operands and effects require; within it, all nodes that can run on the current device precede the
// first node of another device.
#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "kernel/language/graph/new_sizes.h"
#include "kernel/language/graph/node_effects.h"
#include "kernel/runtime/plan/parts.h"
#include "kernel/runtime/plan/variable_steps.h"

namespace keel {
namespace {

using Group = std::vector<const PlacedNode*>;

// Divides the nodes into groups in execution order; each group is on one device.
class Grouping {
 public:
  Grouping(const Graph& graph, std::span<const PlacedNode> placed) : placed_(placed) {
    const NewSizes sizes(graph);
    std::vector<size_t> maker(graph.values.size(), kNone);
    uses_.resize(graph.module->variables.size());
    next_.resize(placed.size());
    open_.assign(placed.size(), 0);
    for (size_t i = 0; i < placed.size(); i++) {
      const Node& node = graph.nodes[placed[i].node];
      for (ValueId v : node.in)
        if (v != kNoValue && maker[v] != kNone) Edge(maker[v], i);
      sizes.ForEach(node, [&](ValueId v) { Edge(maker[v], i); });
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

  std::span<const PlacedNode> placed_;
  size_t last_effect_ = kNone;
  std::vector<Uses> uses_;  // by variable
  std::vector<std::vector<size_t>> next_;
  std::vector<size_t> open_;  // by node: number of unfinished predecessors
  std::map<Device*, std::priority_queue<size_t, std::vector<size_t>, std::greater<>>> ready_;
};

class Splitter {
 public:
  Splitter(const PlanRequest& request, const Optimizer& optimizer, const PlanOptions& options)
      : request_(request), graph_(*request.graph), optimizer_(optimizer), options_(options) {}

  absl::StatusOr<std::unique_ptr<Parts>> Run(const std::vector<Group>& groups) {
    auto parts = std::make_unique<Parts>();
    made_in_.assign(graph_.values.size(), -1);
    feed_of_.assign(graph_.values.size(), kNoValue);
    slot_.assign(graph_.values.size(), kNoValue);
    for (uint32_t i = 0; i < request_.feeds.size(); i++) feed_of_[request_.feeds[i]] = i;
    for (size_t g = 0; g < groups.size(); g++)
      for (const PlacedNode* p : groups[g])
        for (ValueId v : graph_.nodes[p->node].out)
          if (feed_of_[v] == kNoValue) made_in_[v] = static_cast<int>(g);
    FindNewSizes(groups);
    FindLeaving(groups);
    for (size_t g = 0; g < groups.size(); g++)
      RETURN_IF_ERROR(AddPart(groups[g], static_cast<int>(g), *parts));
    RETURN_IF_ERROR(AddPassthrough(*parts));
    for (ValueId v : request_.fetches) parts->fetches.push_back(Slot(v));
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

  // Finds the values whose first dims only a run knows. Later parts read the numbers from the values.
  void FindNewSizes(const std::vector<Group>& groups) {
    for (const Group& group : groups)
      for (const PlacedNode* p : group)
        for (ValueId v : graph_.nodes[p->node].out)
          if (HasNewSize(*graph_.nodes[p->node].op) && made_in_[v] >= 0 &&
              MentionsSymbols(graph_.values[v].type.dims))
            new_sizes_.push_back(v);
  }

  // Finds the values that are used outside the group that computes them.
  void FindLeaving(const std::vector<Group>& groups) {
    leaving_.resize(groups.size());
    for (size_t g = 0; g < groups.size(); g++)
      for (const PlacedNode* p : groups[g])
        for (ValueId v : graph_.nodes[p->node].in)
          if (v != kNoValue && made_in_[v] >= 0 && made_in_[v] != static_cast<int>(g))
            leaving_[static_cast<size_t>(made_in_[v])].insert(v);
    for (ValueId v : request_.fetches)
      if (made_in_[v] >= 0) leaving_[static_cast<size_t>(made_in_[v])].insert(v);
    for (ValueId v : new_sizes_) leaving_[static_cast<size_t>(made_in_[v])].insert(v);
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
      if (MustRun(graph_, graph_.nodes[p->node]) ||
          std::ranges::find(request_.targets, p->node) != request_.targets.end())
        also.push_back(p->node);
    const std::set<ValueId>& leaving = leaving_[static_cast<size_t>(g)];
    return Add(group[0]->device, {entering.begin(), entering.end()}, {leaving.begin(), leaving.end()}, also,
               parts);
  }

  absl::Status Add(Device* device, std::vector<ValueId> in, const std::vector<ValueId>& out,
                   const std::vector<NodeId>& also, Parts& parts) {
    size_t used = in.size();
    for (ValueId v : request_.feeds)  // the numbers of symbols are solved from the feeds of the whole plan
      if (MentionsSymbols(graph_.values[v].type.dims) && std::find(in.begin(), in.end(), v) == in.end())
        in.push_back(v);
    for (ValueId v : new_sizes_)  // of earlier parts
      if (slot_[v] != kNoValue && std::find(in.begin(), in.end(), v) == in.end()) in.push_back(v);
    PlanOptions options = options_;
    options.results_on_device = true;
    options.bodies = request_.device;
    Parts::Part part{.device = device, .plan = nullptr, .feeds = {}, .results = {}, .last_use = {}};
    part.variables = options_.core && device == &options_.core->variables;
    part.effects = !part.variables &&
                   std::ranges::any_of(also, [&](NodeId n) { return MustRun(graph_, graph_.nodes[n]); });
    const Optimizer none;
    const Optimizer& optimizer = part.variables ? none : optimizer_;
    ASSIGN_OR_RETURN(part.plan, optimizer.Make({&graph_, device, in, out, also}, options));
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
  absl::Status AddPassthrough(Parts& parts) {
    std::set<ValueId> passthrough;
    for (ValueId v : request_.fetches)
      if (made_in_[v] < 0) passthrough.insert(v);
    if (passthrough.empty()) return absl::OkStatus();
    std::vector<ValueId> all(passthrough.begin(), passthrough.end()), in;
    for (ValueId v : all)
      if (feed_of_[v] != kNoValue) in.push_back(v);
    return Add(request_.device, in, all, {}, parts);
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

  // The memory of the values of a part; "": known in a run only.
  static std::string MemoryOf(const Parts::Part& part) {
    return part.variables ? "" : part.device->host_memory() ? "host" : part.device->name();
  }

  void FindCrossings(Parts& parts) const {
    std::set<std::pair<ValueId, std::string>> seen;
    auto add = [&](ValueId v, const std::string& to) {
      const std::string from =
          made_in_[v] < 0 ? "host" : MemoryOf(parts.parts[static_cast<size_t>(made_in_[v])]);
      if (from.empty() || to.empty()) return;
      if (from != to && seen.insert({v, to}).second) parts.crossings.push_back({v, from, to});
    };
    for (const auto& [v, part] : entering_) add(v, MemoryOf(parts.parts[part]));
    if (parts.results_on_device) return;
    for (ValueId v : request_.fetches) add(v, "host");
  }

  const PlanRequest& request_;
  const Graph& graph_;
  const Optimizer& optimizer_;
  const PlanOptions& options_;
  std::vector<int> made_in_;        // by value: the group that computes it; -1: none
  std::vector<uint32_t> feed_of_;   // by value: its feed, or kNoValue
  std::vector<uint32_t> slot_;      // by value: its slot, or kNoValue
  std::vector<ValueId> new_sizes_;  // values whose first dim only a run knows
  std::vector<std::set<ValueId>> leaving_;
  std::vector<std::pair<ValueId, size_t>> entering_;  // values with the part that uses them
  uint32_t slots_ = 0;
};

}  // namespace

Parts::Parts() = default;
Parts::~Parts() = default;

absl::StatusOr<std::unique_ptr<Parts>> Split(const PlanRequest& request, std::span<const PlacedNode> placed,
                                             const Optimizer& optimizer, const PlanOptions& options) {
  const Graph& graph = *request.graph;
  const std::vector<Group> groups = Grouping(graph, placed).Run();
  auto parts = std::make_unique<Parts>();
  if (groups.size() > 1 || (groups.size() == 1 && groups[0][0]->device != request.device)) {
    ASSIGN_OR_RETURN(parts, Splitter(request, optimizer, options).Run(groups));
    parts->sums = std::make_unique<SumPlans>(graph.module->catalogue);
  }
  for (const PlacedNode& p : placed) {
    const Node& node = graph.nodes[p.node];
    parts->rows.push_back({graph.NodeName(p.node), std::string(OpName(*node.op)), p.device->name(), p.why});
  }
  return parts;
}

std::vector<const Plan*> Parts::Plans() const {
  std::vector<const Plan*> plans;
  for (const Part& part : parts) plans.push_back(part.plan.get());
  return plans;
}

// The device of each node with the reason, and the copies between memories, with their bytes if known.
void Parts::Report(Json& json, const Lowered& whole, const Binding* binding) const {
  json.Key("placement").BeginArray();
  for (const Parts::Row& row : rows)
    json.BeginObject()
        .Key("node")
        .String(row.node)
        .Key("op")
        .String(row.op)
        .Key("device")
        .String(row.device)
        .Key("why")
        .String(row.why)
        .EndObject();
  json.EndArray();
  json.Key("copies").BeginArray();
  for (const Parts::Crossing& c : crossings) {
    uint32_t v = value_of[c.value];
    json.BeginObject();
    json.Key("value").String(whole.values[v].name);
    json.Key("from").String(c.from);
    json.Key("to").String(c.to);
    if (binding) {
      int64_t count = 1;
      for (int64_t d : binding->shapes[v]) count *= d;
      json.Key("bytes").Int(static_cast<int64_t>(BytesOf(whole.values[v].type.dtype, count)));
    }
    json.EndObject();
  }
  json.EndArray();
}

}  // namespace keel
