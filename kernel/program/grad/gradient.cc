// gradient.cc: reverse-mode differentiation. Calls, and composites without a gradient rule, are expanded at
// the end of the graph and differentiated there. Control ops: control.h.
#include "kernel/program/grad/gradient.h"

#include <algorithm>

#include "kernel/language/graph/copier.h"
#include "kernel/language/graph/types.h"
#include "kernel/program/grad/active.h"
#include "kernel/program/grad/control.h"
#include "kernel/program/grad/slice.h"

namespace keel {
namespace {

constexpr int kMaxNesting = static_cast<int>(kMaxCallDepth);

// Appends the nodes of the body of a call to the graph of the call.
class InlineCopy : public GraphCopier {
 public:
  InlineCopy(const Graph& body, GraphSink& sink, NodeId call)
      : GraphCopier(body, sink.graph()), sink_(sink), call_(call) {}

 private:
  absl::StatusOr<std::vector<ValueId>> Add(Draft draft) override {
    if (draft.origin.device) to_.scope.device = draft.origin.device;
    if (draft.origin.source) to_.scope.source = draft.origin.source;
    ASSIGN_OR_RETURN(std::vector<ValueId> out, sink_.Node(*draft.op, std::move(draft.in), draft.attrs));
    RETURN_IF_ERROR(CheckReads(to_, call_));
    return out;
  }

  GraphSink& sink_;
  const NodeId call_;
};

class Builder {
 public:
  Builder(Graph& graph, GraphSink& sink) : graph_(graph), sink_(sink) {}

  absl::StatusOr<std::vector<ValueId>> Run(const GradientRequest& wanted) {
    RETURN_IF_ERROR(Check(wanted));
    auto count = static_cast<NodeId>(graph_.nodes.size());
    Grow();
    for (ValueId x : wanted.xs) active_[x] = IsFloating(graph_.values[x].type.dtype);
    through_ = wanted.through;
    Activate(0, count);
    RETURN_IF_ERROR(Seed(wanted));
    RETURN_IF_ERROR(Sweep(0, count));
    return Collect(wanted);
  }

 private:
  absl::Status CheckValue(std::string_view what, ValueId v) const {
    if (v < graph_.values.size()) return absl::OkStatus();
    return NotFound(what, " is value ", v, ", but graph '", graph_.name, "' has only ", graph_.values.size());
  }

  std::string TypeOf(ValueId v) const {
    return absl::StrCat("'", graph_.ValueName(v), "' is ", Print(graph_.values[v].type, graph_.module->dims));
  }

  absl::Status Check(const GradientRequest& wanted) const {
    for (ValueId x : wanted.xs) RETURN_IF_ERROR(CheckValue("an x", x));
    if (!wanted.seeds.empty() && wanted.seeds.size() != wanted.ys.size())
      return Invalid("gradient: ", wanted.seeds.size(), " seeds for ", wanted.ys.size(), " ys");
    for (size_t i = 0; i < wanted.ys.size(); i++) {
      ValueId y = wanted.ys[i];
      RETURN_IF_ERROR(CheckValue("a y", y));
      if (!IsFloating(graph_.values[y].type.dtype))
        return Annotate(Invalid("gradient: y ", TypeOf(y), "; only floats have gradients"), kErrorHint,
                        "cast the operands to floats where the computation begins");
      if (wanted.seeds.empty() || wanted.seeds[i] == kNoValue) continue;
      RETURN_IF_ERROR(CheckValue("a seed", wanted.seeds[i]));
      if (!Fits(wanted.seeds[i], y))
        return Invalid("gradient: seed ", TypeOf(wanted.seeds[i]), " but its y ", TypeOf(y));
    }
    return absl::OkStatus();
  }

  // Whether the types are equal, or may be equal for some sizes.
  bool Fits(ValueId v, ValueId of) const {
    return MayBeEqual(graph_.values[v].type, graph_.values[of].type, graph_.module->dims);
  }

  absl::Status Seed(const GradientRequest& wanted) {
    for (size_t i = 0; i < wanted.ys.size(); i++) {
      ValueId y = wanted.ys[i], seed = wanted.seeds.empty() ? kNoValue : wanted.seeds[i];
      if (!active_[y]) continue;
      if (seed == kNoValue) {
        ASSIGN_OR_RETURN(seed, sink_.Filled(graph_.values[y].type, 1));
      }
      RETURN_IF_ERROR(Accumulate(y, seed));
    }
    return absl::OkStatus();
  }

  void Grow() {
    active_.resize(graph_.values.size());
    cotangent_.resize(graph_.values.size(), kNoValue);
  }

  void Activate(NodeId first, NodeId last) {
    Grow();
    MarkActive(graph_, first, last, &active_, through_);
  }
  bool Blocked(NodeId n) const { return through_ && n < through_->size() && !(*through_)[n]; }

  // Adds to the cotangent of a value. If symbols hide that the dims are equal, a reshape is inserted.
  absl::Status Accumulate(ValueId of, ValueId gradient) {
    if (!Fits(gradient, of))
      return Internal("the gradient of '", graph_.ValueName(of), "' is ",
                      Print(graph_.values[gradient].type, graph_.module->dims), ", but ", TypeOf(of));
    if (!(graph_.values[gradient].type == graph_.values[of].type)) {
      ASSIGN_OR_RETURN(gradient, sink_.Shaped("reshape", "to", gradient, graph_.values[of].type.dims));
    }
    Grow();
    if (cotangent_[of] != kNoValue) {
      ASSIGN_OR_RETURN(std::vector<ValueId> sum,
                       sink_.Node("add", std::vector<ValueId>{cotangent_[of], gradient}, {}));
      gradient = sum[0];
    }
    cotangent_[of] = gradient;
    return absl::OkStatus();
  }

  // Whether an active operand receives a gradient from an active result.
  bool Flows(const Node& node) const {
    bool arrived = std::any_of(node.out.begin(), node.out.end(),
                               [&](ValueId v) { return active_[v] && cotangent_[v] != kNoValue; });
    return arrived && AnyActive(node, active_) && VjpOf(*node.op) != Vjp::kNone;
  }

  absl::Status Sweep(NodeId first, NodeId last) {
    for (NodeId n = last; n-- > first;) {
      Grow();
      if (Blocked(n) || !Flows(graph_.nodes[n])) continue;
      const Node node = graph_.nodes[n];  // a copy, because the graph grows
      std::vector<ValueId> cotangents;
      for (ValueId v : node.out) cotangents.push_back(cotangent_[v]);
      graph_.scope = node.origin;  // the gradient is on the node's device
      if (absl::Status s = Back(n, node, cotangents); !s.ok()) {
        std::string name = graph_.ValueName(node.out[0]);
        absl::Status full =
            Reword(s, absl::StrCat("gradient of node '", name, "' (", OpName(*node.op), "): ", s.message()));
        return Annotate(Annotate(full, kErrorOp, OpName(*node.op)), kErrorNode, name);
      }
    }
    return absl::OkStatus();
  }

  absl::Status Back(NodeId n, const Node& node, const std::vector<ValueId>& cotangents) {
    if (IsControl(*node.op)) return Add(node, ControlGradient(sink_, {n, node, Wanted(node), cotangents}));
    if (IsTypedByGraph(*node.op)) {
      std::vector<uint32_t> bodies = BodiesOf(*node.op, node.attrs);
      if (bodies.size() > 1) return GivenVjp(n, node, bodies[1], cotangents);
      return Expanded(cotangents, [&] { return Inline(n, bodies[0], node.in); });
    }
    switch (VjpOf(*node.op)) {
      case Vjp::kRule:
        return Rule(node, cotangents);
      case Vjp::kBody:
        return Expanded(cotangents, [&] {
          return ExpandBody(*graph_.module->catalogue, *node.op, node.in, node.attrs, graph_.module->dims,
                            sink_);
        });
      default:
        return Annotate(NotFound("the op has no gradient rule and no body in other ops"), kErrorHint,
                        "insert stop_gradient before it to treat its operands as constants");
    }
  }

  std::vector<bool> Wanted(const Node& node) const {
    std::vector<bool> wanted;
    for (ValueId v : node.in) wanted.push_back(v != kNoValue && active_[v]);
    return wanted;
  }

  absl::Status Add(const Node& node, const absl::StatusOr<std::vector<ValueId>>& gradients) {
    RETURN_IF_ERROR(gradients.status());
    for (size_t i = 0; i < gradients->size(); i++)
      if ((*gradients)[i] != kNoValue) RETURN_IF_ERROR(Accumulate(node.in[i], (*gradients)[i]));
    return absl::OkStatus();
  }

  absl::Status Rule(const Node& node, const std::vector<ValueId>& cotangents) {
    VjpNode request{node.in, node.out, cotangents, Wanted(node)};
    return Add(node, ExpandVjp(*graph_.module->catalogue, *node.op, request, node.attrs, graph_.module->dims,
                               sink_));
  }

  // A call with its own gradient graph, which is inlined.
  absl::Status GivenVjp(NodeId n, const Node& node, uint32_t vjp, const std::vector<ValueId>& cotangents) {
    std::vector<ValueId> in = node.in;
    in.insert(in.end(), node.out.begin(), node.out.end());
    for (size_t i = 0; i < node.out.size(); i++) {
      if (!IsFloating(graph_.values[node.out[i]].type.dtype)) continue;
      in.push_back(cotangents[i]);
      if (cotangents[i] != kNoValue) continue;
      ASSIGN_OR_RETURN(in.back(), sink_.Filled(graph_.values[node.out[i]].type, 0));
    }
    ASSIGN_OR_RETURN(std::vector<ValueId> made, Inline(n, vjp, in));
    std::vector<ValueId> gradients(node.in.size(), kNoValue);
    for (size_t i = 0, next = 0; i < node.in.size(); i++) {
      if (!IsFloating(graph_.values[node.in[i]].type.dtype)) continue;
      if (active_[node.in[i]]) gradients[i] = made[next];
      next++;
    }
    return Add(node, std::move(gradients));
  }

  // Expands the node with `write` and differentiates the expansion.
  template <typename Write>
  absl::Status Expanded(const std::vector<ValueId>& cotangents, Write write) {
    if (nesting_ >= kMaxNesting) return Exhausted("bodies nest deeper than ", kMaxNesting, ", the limit");
    auto first = static_cast<NodeId>(graph_.nodes.size());
    ASSIGN_OR_RETURN(std::vector<ValueId> results, write());
    auto last = static_cast<NodeId>(graph_.nodes.size());
    Activate(first, last);
    for (size_t i = 0; i < results.size(); i++)
      if (cotangents[i] != kNoValue && active_[results[i]])
        RETURN_IF_ERROR(Accumulate(results[i], cotangents[i]));
    nesting_++;
    RETURN_IF_ERROR(Sweep(first, last));
    nesting_--;
    return absl::OkStatus();
  }

  // Copies the nodes of a graph without effects, which already took place in the forward run.
  absl::StatusOr<std::vector<ValueId>> Inline(NodeId call, uint32_t number, const std::vector<ValueId>& in) {
    ASSIGN_OR_RETURN(number, WithoutEffects(*graph_.module, number));
    const Graph& body = *graph_.module->graphs[number];
    InlineCopy copy(body, sink_, call);
    for (size_t i = 0; i < in.size(); i++) copy.map[body.params[i]] = in[i];
    RETURN_IF_ERROR(copy.CopyNodes(std::vector<bool>(body.nodes.size(), true)));
    std::vector<ValueId> results;
    for (ValueId v : body.results) {
      ASSIGN_OR_RETURN(results.emplace_back(), copy.Find(v));
    }
    return results;
  }

  absl::StatusOr<std::vector<ValueId>> Collect(const GradientRequest& wanted) {
    std::vector<ValueId> out;
    Grow();
    for (ValueId x : wanted.xs) {
      out.push_back(cotangent_[x]);
      if (out.back() != kNoValue || !wanted.zeros) continue;
      ASSIGN_OR_RETURN(out.back(), sink_.Filled(graph_.values[x].type, 0));
    }
    return out;
  }

  Graph& graph_;
  GraphSink& sink_;
  std::vector<bool> active_;        // by value: it depends on an x
  std::vector<ValueId> cotangent_;  // by value: the sum so far
  const std::vector<bool>* through_ = nullptr;
  int nesting_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<ValueId>> AppendGradient(GraphSink& sink, const GradientRequest& wanted) {
  Origin scope = sink.graph().scope;
  absl::StatusOr<std::vector<ValueId>> out = Builder(sink.graph(), sink).Run(wanted);
  sink.graph().scope = scope;
  return out;
}

absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const GradientRequest& wanted) {
  GraphTransaction transaction(graph);
  ASSIGN_OR_RETURN(std::vector<ValueId> out, AppendGradient(transaction.sink, wanted));
  transaction.Commit();
  return out;
}

}  // namespace keel
