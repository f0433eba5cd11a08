// gradient.cc: the builder. Composites without a rule, and calls, are written out at the end of the graph and
// differentiated there; the graph itself keeps the node as it is.
#include "kernel/grad/gradient.h"

#include <algorithm>

#include "kernel/grad/graph_sink.h"

namespace keel {
namespace {

constexpr int kMaxNesting = static_cast<int>(kMaxCallDepth);

class Builder {
 public:
  Builder(Graph& graph, GraphSink& sink) : graph_(graph), sink_(sink) {}

  absl::StatusOr<std::vector<ValueId>> Run(const GradientWanted& wanted) {
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

  absl::Status Check(const GradientWanted& wanted) const {
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

  // The same type, as far as can be known before there are numbers for symbols?
  bool Fits(ValueId v, ValueId of) const {
    const TensorType &a = graph_.values[v].type, &b = graph_.values[of].type;
    if (a.dtype != b.dtype || a.dims.size() != b.dims.size()) return false;
    for (size_t d = 0; d < a.dims.size(); d++) {
      if (a.dims[d] == b.dims[d]) continue;
      Order order = graph_.module->dims.Compare(a.dims[d], b.dims[d]);
      if (order != Order::kEqual && order != Order::kUnknown) return false;
    }
    return true;
  }

  absl::Status Seed(const GradientWanted& wanted) {
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

  // Marks what depends on an x along floats and ops that let gradients through.
  void Activate(NodeId first, NodeId last) {
    Grow();
    for (NodeId n = first; n < last; n++) {
      const Node& node = graph_.nodes[n];
      if (VjpOf(*node.op) == Vjp::kNone || !AnyActive(node) || Blocked(n)) continue;
      for (ValueId v : node.out) active_[v] = active_[v] || IsFloating(graph_.values[v].type.dtype);
    }
  }
  bool Blocked(NodeId n) const { return through_ && n < through_->size() && !(*through_)[n]; }
  bool AnyActive(const Node& node) const {
    return std::any_of(node.in.begin(), node.in.end(),
                       [&](ValueId v) { return v != kNoValue && active_[v]; });
  }

  // Adds to what arrived at a value. Symbols may hide that a gradient has its value's dims: a reshape says
  // so.
  absl::Status Accumulate(ValueId of, ValueId gradient) {
    if (!Fits(gradient, of))
      return Internal("the gradient of '", graph_.ValueName(of), "' is ",
                      Print(graph_.values[gradient].type, graph_.module->dims), ", but ", TypeOf(of));
    if (!(graph_.values[gradient].type == graph_.values[of].type)) {
      AttrValue to;
      to.kind = KEEL_ATTR_DIMS;
      const Dims& dims = graph_.values[of].type.dims;
      to.list.assign(dims.begin(), dims.end());
      ASSIGN_OR_RETURN(std::vector<ValueId> out, sink_.Node("reshape", {&gradient, 1}, {{"to", to}}));
      gradient = out[0];
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

  // Does a gradient arrive that somebody waits for?
  bool Flows(const Node& node) const {
    bool arrived = std::any_of(node.out.begin(), node.out.end(),
                               [&](ValueId v) { return active_[v] && cotangent_[v] != kNoValue; });
    return arrived && AnyActive(node) && VjpOf(*node.op) != Vjp::kNone;
  }

  absl::Status Sweep(NodeId first, NodeId last) {
    for (NodeId n = last; n-- > first;) {
      Grow();
      if (Blocked(n) || !Flows(graph_.nodes[n])) continue;
      const Node node = graph_.nodes[n];  // a copy: the graph grows
      std::vector<ValueId> cotangents;
      for (ValueId v : node.out) cotangents.push_back(cotangent_[v]);
      graph_.scope = node.device;  // the gradient is computed where the node is
      if (absl::Status s = Back(node, cotangents); !s.ok()) {
        absl::Status full(s.code(),
                          absl::StrCat("gradient of node '", graph_.ValueName(node.out[0]), "' (",
                                       std::string(OpName(*node.op)), "): ", std::string(s.message())));
        s.ForEachPayload([&](absl::string_view url, const absl::Cord& c) { full.SetPayload(url, c); });
        return Annotate(Annotate(full, kErrorOp, OpName(*node.op)), kErrorNode,
                        graph_.ValueName(node.out[0]));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Back(const Node& node, const std::vector<ValueId>& cotangents) {
    if (IsTypedByGraph(*node.op)) return Through(cotangents, [&] { return Inline(node); });
    switch (VjpOf(*node.op)) {
      case Vjp::kRule:
        return Rule(node, cotangents);
      case Vjp::kBody:
        return Through(cotangents, [&] {
          return ExpandBody(*graph_.module->catalogue, *node.op, node.in, node.attrs, graph_.module->dims,
                            sink_);
        });
      default:
        return Annotate(NotFound("the op has no gradient rule and no body in other ops"), kErrorHint,
                        "stop_gradient in front of it treats its operands as constants");
    }
  }

  absl::Status Rule(const Node& node, const std::vector<ValueId>& cotangents) {
    VjpNode asked{node.in, node.out, cotangents, {}};
    for (ValueId v : node.in) asked.wanted.push_back(v != kNoValue && active_[v]);
    ASSIGN_OR_RETURN(std::vector<ValueId> gradients, ExpandVjp(*graph_.module->catalogue, *node.op, asked,
                                                               node.attrs, graph_.module->dims, sink_));
    for (size_t i = 0; i < gradients.size(); i++)
      if (gradients[i] != kNoValue) RETURN_IF_ERROR(Accumulate(node.in[i], gradients[i]));
    return absl::OkStatus();
  }

  // Writes out what the node is made of and goes back through that.
  template <typename Write>
  absl::Status Through(const std::vector<ValueId>& cotangents, Write write) {
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

  absl::StatusOr<std::vector<ValueId>> Inline(const Node& call) {
    const Graph& body = *graph_.module->graphs[BodiesOf(call.attrs)[0]];
    std::vector<ValueId> map(body.values.size(), kNoValue), results;
    for (size_t i = 0; i < call.in.size(); i++) map[body.params[i]] = call.in[i];
    for (const auto& [constant, value] : body.constant_values) {
      ASSIGN_OR_RETURN(map[value], graph_.AddConstant(constant));
    }
    for (const Node& node : body.nodes) {
      if (HasEffect(*node.op))
        return Unimplemented("graph '", body.name, "' has an effect, ", std::string(OpName(*node.op)),
                             ", which its gradient would repeat");
      std::vector<ValueId> in;
      for (ValueId v : node.in) in.push_back(v == kNoValue ? kNoValue : map[v]);
      if (node.device) graph_.scope = node.device;
      ASSIGN_OR_RETURN(std::vector<ValueId> out, sink_.Node(*node.op, std::move(in), node.attrs));
      for (size_t i = 0; i < out.size(); i++) map[node.out[i]] = out[i];
    }
    for (ValueId v : body.results) results.push_back(map[v]);
    return results;
  }

  absl::StatusOr<std::vector<ValueId>> Collect(const GradientWanted& wanted) {
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
  std::vector<ValueId> cotangent_;  // by value: what arrived so far
  const std::vector<bool>* through_ = nullptr;
  int nesting_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const GradientWanted& wanted) {
  GraphSink sink(graph);
  uint32_t scope = graph.scope;
  struct Undo {  // also where memory runs out
    GraphSink* sink;
    ~Undo() {
      if (sink) sink->TakeBack();
    }
  } undo{&sink};
  absl::StatusOr<std::vector<ValueId>> out = Builder(graph, sink).Run(wanted);
  if (out.ok()) undo.sink = nullptr;
  graph.scope = scope;
  return out;
}

}  // namespace keel
