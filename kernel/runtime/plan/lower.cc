// lower.cc: prunes, then emits each node in program order: as an alias, as a step of the device's impl, or as
// the nodes of its body. Steps with constant operands are folded at once (fold.cc).
#include "kernel/runtime/plan/lower.h"

#include <algorithm>
#include <map>

#include "kernel/base/hash.h"
#include "kernel/language/graph/node_effects.h"
#include "kernel/runtime/device/accelerator.h"
#include "kernel/runtime/plan/binding.h"
#include "kernel/runtime/plan/core.h"
#include "kernel/runtime/plan/fold.h"
#include "kernel/runtime/plan/lower_checks.h"
#include "kernel/runtime/plan/moves.h"
#include "kernel/runtime/plan/node_facts.h"
#include "kernel/runtime/plan/step.h"

namespace keel {
namespace {

class Lowering : public BodySink {
 public:
  Lowering(const Graph& graph, Lowered& out, const PlanOptions& options)
      : graph_(&graph), out_(out), options_(options) {}

  absl::Status Run(const PlanRequest& request) {
    const auto feeds = request.feeds;
    map_.assign(graph_->values.size(), kNoValue);
    for (size_t i = 0; i < feeds.size(); i++) {
      RETURN_IF_ERROR(AddFeed(feeds[i], static_cast<uint32_t>(i)));
      if (const TensorType& type = graph_->values[feeds[i]].type; MentionsSymbols(type.dims))
        sized_.push_back(type);
      if (i < request.known.size() && request.known[i]) AddKnown(feeds[i], *request.known[i]);
    }
    AddRules(*graph_, out_);
    RETURN_IF_ERROR(AddNodes(request.Needed()));
    if (!options_.probe && !missing_.empty()) return MissingImpls(*out_.device, missing_);
    for (ValueId v : request.fetches) {
      ASSIGN_OR_RETURN(uint32_t value, Mapped(v));
      out_.fetches.push_back(value);
    }
    if (options_.probe) out_.value_of = map_;
    return absl::OkStatus();
  }

  // BodySink: receives the nodes of the bodies of composites.
  absl::StatusOr<std::vector<Value>> Node(std::string_view op, std::span<const Value> in,
                                          const Attrs& attrs) override {
    ASSIGN_OR_RETURN(const OpDef* def, out_.catalogue->Find(op, 0));
    return Emit(*def, {in.begin(), in.end()}, attrs, {});
  }
  absl::StatusOr<Value> Literal(DType dtype, double value) override { return AddLiteral(out_, dtype, value); }
  TensorType Type(Value value) override { return out_.values[value].type; }

 private:
  absl::StatusOr<Dim> Translate(Dim d) {
    if (!IsSymbolic(d)) return d;
    if (auto found = dims_.find(d); found != dims_.end()) return found->second;
    ASSIGN_OR_RETURN(Dim mine, out_.dims.Parse(graph_->module->dims.Print(d)));
    return dims_[d] = mine;
  }

  // Converts the dims of types and attributes from the module's table to the plan's table.
  template <typename T>
  absl::StatusOr<T> Translate(T what) {
    RETURN_IF_ERROR(MapDims(translate_, &what));
    return what;
  }

  uint32_t AddValue(PlanValue value) {
    out_.values.push_back(std::move(value));
    return static_cast<uint32_t>(out_.values.size() - 1);
  }

  absl::Status AddFeed(ValueId v, uint32_t number) {
    if (map_[v] != kNoValue) return Invalid("value \"", graph_->ValueName(v), "\" is fed twice");
    ASSIGN_OR_RETURN(TensorType type, Translate(graph_->values[v].type));
    map_[v] = AddValue({type, graph_->ValueName(v), Where::kFeed, number});
    out_.feeds.push_back(map_[v]);
    return absl::OkStatus();
  }

  // Nodes read the constant instead of the feed, unless the feed's type has symbols that its shape decides.
  void AddKnown(ValueId v, const Constant& constant) {
    const PlanValue& feed = out_.values[map_[v]];
    if (MentionsSymbols(feed.type.dims)) return;
    out_.constants.push_back(constant);
    map_[v] =
        AddValue({feed.type, feed.name, Where::kConstant, static_cast<uint32_t>(out_.constants.size() - 1)});
  }

  absl::StatusOr<uint32_t> Mapped(ValueId v) {
    if (map_[v] != kNoValue) return map_[v];
    const keel::Value& value = graph_->values[v];
    if (value.kind == ValueKind::kParam) return NotFed(*graph_, v);
    if (value.kind != ValueKind::kConstant)
      return Internal("value ", graph_->ValueName(v), " is not a result of a lowered node");
    out_.constants.push_back(graph_->module->constants[value.index]);
    return map_[v] = AddValue({value.type, graph_->ValueName(v), Where::kConstant,
                               static_cast<uint32_t>(out_.constants.size() - 1)});
  }

  absl::Status AddNodes(const std::vector<bool>& needed) {
    for (size_t n = 0; n < graph_->nodes.size(); n++) {
      if (!needed[n]) continue;
      node_ = static_cast<NodeId>(n);
      const keel::Node& node = graph_->nodes[n];
      std::vector<std::string> names;
      for (ValueId v : node.out) names.push_back(options_.prefix + graph_->ValueName(v));
      if (node.out.empty()) names.push_back(options_.prefix + graph_->NodeName(node_));
      if (absl::Status s = AddNode(node, names); !s.ok())
        return Annotate(Annotate(s, kErrorNode, graph_->NodeName(node_)), kErrorOp, OpName(*node.op));
    }
    return absl::OkStatus();
  }

  absl::Status AddNode(const keel::Node& node, const std::vector<std::string>& names) {
    const std::string* outer = source_;
    if (node.origin.source) source_ = &out_.sources.emplace_front(graph_->module->SourceText(node.origin));
    const size_t before = out_.checks.size();
    absl::Status status = AddParts(node, names);
    for (size_t i = before; i < out_.checks.size(); i++)
      if (std::string& owner = out_.checks[i].node; owner.empty())
        owner =
            names.empty() ? std::as_const(body_of_) : names[0];  // a node of an inlined body may have none
    source_ = outer;
    return status;
  }

  absl::Status AddParts(const keel::Node& node, const std::vector<std::string>& names) {
    std::vector<uint32_t> in;
    for (ValueId v : node.in) {
      in.push_back(kNoValue);
      if (v == kNoValue) continue;
      ASSIGN_OR_RETURN(in.back(), Mapped(v));
    }
    ASSIGN_OR_RETURN(Attrs attrs, Translate(node.attrs));
    ASSIGN_OR_RETURN(std::vector<Value> out, Emit(*node.op, std::move(in), attrs, names));
    for (size_t i = 0; i < out.size(); i++) {
      if (map_[node.out[i]] != kNoValue) continue;  // the result is fed
      map_[node.out[i]] = out[i];
      ASSIGN_OR_RETURN(TensorType type, Translate(graph_->values[node.out[i]].type));
      RETURN_IF_ERROR(AddDeclaredType(graph_->values[node.out[i]].name, type, out[i], out_));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<Value>> Emit(const OpDef& op, std::vector<uint32_t> in, const Attrs& attrs,
                                          const std::vector<std::string>& names) {
    std::vector<Operand> operands = OperandsOf(in, [&](Value v) { return Type(v); });
    Inferred inferred;
    RETURN_IF_ERROR(Infer(op, operands, attrs, out_.dims, &inferred, &types_, &vars_));
    for (Inferred::Check& check : inferred.checks)
      check.message = WithSource(source_, std::move(check.message));
    out_.checks.insert(out_.checks.end(), inferred.checks.begin(), inferred.checks.end());
    if (IsAlias(op, operands, inferred)) return AddAlias(in[0], inferred.results[0], names);
    Step step;
    step.op = &op;
    step.name = StepName(op, names);
    step.source = source_;
    step.in = std::move(in);
    step.attrs = std::move(inferred.attrs);
    for (const Operand& o : operands) step.in_dtypes.push_back(o.type.dtype);
    if (BodiesMakeSizes(*graph_->module, step.attrs) && (options_.bodies || !options_.observe))
      return AddSizedBodies(std::move(step), inferred, names);
    if (IsControl(op)) return AddControl(std::move(step), inferred, names);
    if (IsCore(op)) return AddCore(std::move(step), inferred, names);
    if (HasNewSize(op) && !HasBody(op))
      return Unimplemented(OpName(op), " has a size that only a run knows; only ops of Keel may");
    ASSIGN_OR_RETURN(step.body, BodyOf(*graph_->module, op, step.attrs, out_.dims, translate_));
    if (!step.body && out_.accelerator && FoldOnHost(out_, &step, inferred, names, options_, &folded_bytes_))
      return step.out;
    // Inlines calls for observers, which see every node, and calls with effects, which impls may not have.
    bool effects = step.body && HasEffects(*graph_->module, step.attrs);
    if (!step.body || !(options_.observe || effects)) {
      Step probe = step;
      ASSIGN_OR_RETURN(step.impl, ChooseImplOrMoves(*out_.device, op, inferred,
                                                    [&] { return ViewTyped(probe, inferred); }));
    }
    if (step.impl) return AddStep(std::move(step), inferred, names);
    if (step.body) return Inline(step, names);
    if (HasBody(op)) return Expand(op, step.in, attrs, names);
    if (std::optional<Dim> size = KnownSize(*step.op, step.attrs)) {
      ASSIGN_OR_RETURN(uint32_t v, AddLiteral(out_, inferred.results[0].dtype, static_cast<double>(*size)));
      out_.values[v].name = names.empty() ? "" : names[0];
      return std::vector<Value>{v};
    }
    std::string types = DescribeTypes(inferred, step.in_dtypes);
    if (const char* why = WhyLacking(*out_.device, op, inferred.types)) types.append("; ").append(why);
    std::string what = absl::StrCat(std::string(OpName(op)), " (", types, ")");
    missing_[what]++;
    if (options_.probe) out_.lacking[node_].insert(what);
    return AddResults(inferred, names);
  }

  // Chooses the device's impl for the whole control step, if it has one.
  absl::Status ChooseWholeImpl(Step* step, const Inferred& inferred) {
    if (options_.observe || HasEffects(*graph_->module, step->attrs) ||
        !out_.device->plugin().impls.contains(std::string(OpName(*step->op))))
      return absl::OkStatus();
    for (uint32_t number : BodiesOf(*step->op, step->attrs)) {
      ASSIGN_OR_RETURN(step->graphs.emplace_back(),
                       CreateBody(*graph_->module->graphs[number], out_.dims, translate_));
    }
    Step probe = *step;
    ASSIGN_OR_RETURN(step->impl, ChooseImpl(*out_.device, *step->op, inferred,
                                            [&] { return ViewTyped(probe, inferred); }));
    if (!step->impl) step->graphs.clear();
    for (const auto& graph : step->graphs)
      out_.checks.insert(out_.checks.end(), graph->checks.begin(), graph->checks.end());
    return absl::OkStatus();
  }

  // By input of the bodies: the constant that all iterations get, or null. Bodies fold and devices pack
  // constants once, and not in each iteration. Not for devices with their own memory: each body would upload
  // its own copy.
  std::vector<const Constant*> KnownInputs(const Step& step) const {
    std::vector<const Constant*> known;
    if (out_.accelerator) return known;
    const BodyLayout layout = LayoutOf(step);
    for (size_t i = layout.skip; i < step.in.size() - layout.trailing; i++) {
      const size_t input = i - layout.skip;
      const PlanValue& root = out_.values[out_.Root(step.in[i])];
      const bool fixed = input >= layout.carry && !layout.IsSliced(input) && root.where == Where::kConstant;
      known.push_back(fixed ? &out_.constants[root.index] : nullptr);
    }
    return known;
  }

  // Lowers each body separately, for the same device.
  absl::StatusOr<std::vector<Value>> AddControl(Step step, const Inferred& inferred,
                                                const std::vector<std::string>& names) {
    RETURN_IF_ERROR(ChooseWholeImpl(&step, inferred));
    if (step.impl) return AddStep(std::move(step), inferred, names);
    const std::vector<const Constant*> known = KnownInputs(step);
    for (uint32_t number : BodiesOf(*step.op, step.attrs)) {
      const Graph& body = *graph_->module->graphs[number];
      PlanOptions options = options_;
      options.prefix = absl::StrCat(body.name, "/");
      ASSIGN_OR_RETURN(std::unique_ptr<Lowered> lowered, Lower({&body, out_.device, body.params, body.results,
                                                                BodyTargets(body, options_.strict), known},
                                                               options));
      for (const auto& [node, what] : lowered->lacking) out_.lacking[node_].insert(what.begin(), what.end());
      step.bodies.push_back(std::move(lowered));
    }
    return AddWithBodies(std::move(step), inferred, names);
  }

  // Bodies with new sizes: only parts of arrays run them (sized_bodies.h).
  absl::StatusOr<std::vector<Value>> AddSizedBodies(Step step, const Inferred& inferred,
                                                    const std::vector<std::string>& names) {
    if (!options_.plan_body && !options_.probe)
      return Unimplemented("a size that only a run knows is not possible here");
    for (uint32_t number : BodiesOf(*step.op, step.attrs)) {
      if (options_.probe || (IsTypedByGraph(*step.op) && !step.plans.empty())) break;
      ASSIGN_OR_RETURN(step.plans.emplace_back(),
                       options_.plan_body(*graph_->module->graphs[number], sized_, options_));
    }
    return AddWithBodies(std::move(step), inferred, names);
  }

  std::vector<Value> AddWithBodies(Step step, const Inferred& inferred,
                                   const std::vector<std::string>& names) {
    step.impl = CoreImpl();
    step.needs_dims = true;
    step.out = AddResults(inferred, names);
    std::vector<Value> out = step.out;
    out_.steps.push_back(std::move(step));
    return out;
  }

  absl::StatusOr<std::vector<Value>> AddCore(Step step, const Inferred& inferred,
                                             const std::vector<std::string>& names) {
    ASSIGN_OR_RETURN(step.core, MakeCore(*step.op, step.attrs, step.in.size(), *graph_->module,
                                         options_.core ? &options_.core->printer : nullptr));
    step.impl = CoreImpl();
    step.launch = std::make_shared<Launch>();
    step.launch->launch.run = step.core->run;
    return AddStep(std::move(step), inferred, names);
  }

  absl::StatusOr<std::vector<Value>> AddAlias(uint32_t of, const TensorType& type,
                                              const std::vector<std::string>& names) {
    return std::vector<Value>{AddValue({type, names.empty() ? "" : names[0], Where::kAlias, of})};
  }

  std::string StepName(const OpDef& op, const std::vector<std::string>& names) {
    if (names.empty()) return absl::StrCat(body_of_.empty() ? "" : body_of_ + "/", std::string(OpName(op)));
    return names[0];
  }

  absl::StatusOr<std::vector<Value>> Expand(const OpDef& op, std::span<const uint32_t> in, const Attrs& attrs,
                                            const std::vector<std::string>& names) {
    std::string outer = body_of_;
    if (!names.empty()) body_of_ = names[0];
    absl::StatusOr<std::vector<Value>> out = ExpandBody(*out_.catalogue, op, in, attrs, out_.dims, *this);
    body_of_ = outer;
    RETURN_IF_ERROR(out.status());
    for (size_t i = 0; i < names.size() && i < out->size(); i++) {
      PlanValue& value = out_.values[(*out)[i]];
      if (value.where == Where::kComputed && value.name.empty()) value.name = names[i];
    }
    return out;
  }

  // Emits the nodes of the body of a call that has no impl; their names are prefixed with the call's name.
  absl::StatusOr<std::vector<Value>> Inline(const Step& call, const std::vector<std::string>& names) {
    const Graph& body = *graph_->module->graphs[BodiesOf(call.attrs)[0]];
    std::vector<uint32_t> map(body.values.size(), kNoValue);
    for (size_t i = 0; i < call.in.size(); i++) map[body.params[i]] = call.in[i];
    std::string prefix = call.name;
    HashMap<ValueId, std::string> results;
    for (size_t i = 0; i < names.size(); i++) results.emplace(body.results[i], names[i]);
    const Graph* outer_graph = std::exchange(graph_, &body);
    std::swap(map_, map);
    std::string outer = std::exchange(body_of_, prefix);
    absl::Status status;
    std::vector<bool> needed =
        NeededNodes(body, body.params, body.results, BodyTargets(body, options_.strict));
    for (size_t n = 0; status.ok() && n < body.nodes.size(); n++)
      if (needed[n]) status = AddNode(body.nodes[n], BodyNodeNames(body, body.nodes[n], results));
    std::vector<Value> out;
    for (size_t i = 0; status.ok() && i < body.results.size(); i++) {
      absl::StatusOr<uint32_t> result = Mapped(body.results[i]);  // a pass may have made it a constant
      status = result.status();
      if (status.ok()) out.push_back(*result);
    }
    body_of_ = outer;
    std::swap(map_, map);
    graph_ = outer_graph;
    RETURN_IF_ERROR(status);
    return out;
  }

  std::vector<std::string> BodyNodeNames(const Graph& body, const keel::Node& node,
                                         const HashMap<ValueId, std::string>& results) {
    std::vector<std::string> names;
    bool any = false;
    for (ValueId v : node.out) {
      auto known = results.find(v);
      any = any || known != results.end() || !body.values[v].name.empty();
      names.push_back(known != results.end() ? known->second
                      : body.values[v].name.empty()
                          ? ""
                          : absl::StrCat(body_of_.empty() ? "" : body_of_ + "/", body.values[v].name));
    }
    if (node.out.empty() && !node.name.empty())
      return {absl::StrCat(body_of_.empty() ? "" : body_of_ + "/", node.name)};
    return any && !names[0].empty() ? names : std::vector<std::string>();
  }

  absl::StatusOr<keel_node> ViewTyped(Step& step, const Inferred& inferred) {
    size_t before = out_.values.size();
    for (const TensorType& type : inferred.results)
      step.out.push_back(AddValue({type, "", Where::kComputed, 0}));
    absl::StatusOr<keel_node> node = ViewStep(out_, step, {});
    out_.values.resize(before);
    return node;
  }

  std::vector<Value> AddResults(const Inferred& inferred, const std::vector<std::string>& names) {
    std::vector<Value> out;
    for (size_t i = 0; i < inferred.results.size(); i++)
      out.push_back(AddValue({inferred.results[i], i < names.size() ? names[i] : "", Where::kComputed, 0}));
    return out;
  }

  absl::StatusOr<std::vector<Value>> AddStep(Step step, const Inferred& inferred,
                                             const std::vector<std::string>& names) {
    step.out = AddResults(inferred, names);
    step.needs_dims = step.impl->table.prepare && !(step.impl->table.flags & KEEL_IMPL_ANY_DIMS) &&
                      MentionsSymbols(out_, step);
    if (step.body) out_.checks.insert(out_.checks.end(), step.body->checks.begin(), step.body->checks.end());
    // If it fails, the step stays in the plan and fails in a run, if it is ever reached.
    if (!out_.accelerator && !options_.observe && !IsControl(*step.op) &&
        CanFold(out_, step, &folded_bytes_) && Fold(out_, step, *out_.device, options_.threads).ok())
      return step.out;
    std::vector<Value> out = step.out;
    out_.steps.push_back(std::move(step));
    return out;
  }

  const Graph* graph_;  // the graph, or the body being inlined
  Lowered& out_;
  const PlanOptions& options_;
  std::vector<uint32_t> map_;      // graph value -> plan value
  std::vector<TensorType> sized_;  // of feeds with symbolic dims
  HashMap<Dim, Dim> dims_;
  const DimMap translate_ = [this](Dim d) { return Translate(d); };
  const GraphTypesOf types_ = [this](int64_t graph) -> absl::StatusOr<GraphTypes> {
    ASSIGN_OR_RETURN(GraphTypes types, graph_->module->BodyTypes(graph));
    for (auto* side : {&types.params, &types.results})
      for (TensorType& type : *side) RETURN_IF_ERROR(MapDims(translate_, &type));
    return types;
  };
  const VarTypeOf vars_ = [this](int64_t v) { return graph_->module->VariableType(v); };
  std::map<std::string, size_t> missing_;
  const std::string* source_ = nullptr;  // of the current node
  std::string body_of_;                  // name of the call or composite being inlined; empty: none
  NodeId node_ = 0;                      // the current node of the outermost graph
  uint64_t folded_bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Lowered>> Lower(const PlanRequest& request, const PlanOptions& options) {
  const Graph& graph = *request.graph;
  Device* device = request.device;
  auto out = std::make_unique<Lowered>();
  out->name = graph.name;
  out->catalogue = graph.module->catalogue;
  out->device = device;
  out->exact_convolution = options.exact_convolution;
  if (!device->host_memory()) {
    ASSIGN_OR_RETURN(out->accelerator, Accelerator::Of(*device));
  }
  RETURN_IF_ERROR(Lowering(graph, *out, options).Run(request));
  std::vector<bool> needed = NeededConstants(*out);
  for (size_t i = 0; i < needed.size(); i++)
    if (!needed[i]) out->constants[i] = {"", out->constants[i].type, nullptr, 0, nullptr, false};
  return out;
}

}  // namespace keel
