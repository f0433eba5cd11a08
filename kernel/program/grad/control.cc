// control.cc: gradients of cond, switch and scan; see control.h.
#include "kernel/program/grad/control.h"

#include <algorithm>

#include "kernel/language/graph/node_effects.h"
#include "kernel/program/grad/active.h"
#include "kernel/program/grad/request.h"
#include "kernel/program/grad/slice.h"

namespace keel {
namespace {

using Values = std::vector<ValueId>;
using Flags = std::vector<bool>;

void Append(Values* to, std::span<const ValueId> more) { to->insert(to->end(), more.begin(), more.end()); }

// A copy of a body, followed by its gradient, from which the backward body is extracted; not in the module.
struct Joint {
  std::unique_ptr<Graph> graph;
  Values seeds, dxs;  // parameters for the cotangents of ys; gradients of xs
};

absl::StatusOr<Joint> Join(const Graph& body, const Flags& ys, const Flags& xs) {
  Joint joint{CopyGraph(body), {}, {}};
  Graph& graph = *joint.graph;
  Values of, at;
  for (size_t i = 0; i < ys.size(); i++) {
    if (!ys[i]) continue;
    of.push_back(body.results[i]);
    ASSIGN_OR_RETURN(joint.seeds.emplace_back(), graph.AddParam("", body.values[of.back()].type));
  }
  for (size_t i = 0; i < xs.size(); i++)
    if (xs[i]) at.push_back(body.params[i]);
  GraphSink sink(graph);
  ASSIGN_OR_RETURN(joint.dxs, AppendGradient(sink, {of, joint.seeds, at, true}));
  return joint;
}

// ---- scan

// The groups of operands of a scan.
struct Scan {
  explicit Scan(const Node& node)
      : carry(static_cast<size_t>(IntAttr(node.attrs, "carry"))),
        cut(carry + static_cast<size_t>(IntAttr(node.attrs, "invariants"))),
        counted(IntAttr(node.attrs, "counted") != 0),
        given(node.in.size() - counted) {}
  size_t carry, cut;
  bool counted;
  size_t given;  // operands passed to the body
};

class ScanGradient {
 public:
  ScanGradient(GraphSink& sink, const ControlNode& request)
      : sink_(sink),
        graph_(sink.graph()),
        request_(request),
        node_(request.original),
        is_(node_),
        body_(*graph_.module->graphs[BodiesOf(node_.attrs)[0]]) {}

  absl::StatusOr<Values> Run() {
    FindActive();
    ASSIGN_OR_RETURN(Joint joint, Join(body_, Seeded(), active_));
    RETURN_IF_ERROR(Carry(joint));
    Values from = params_;
    Append(&from, body_.params);
    Append(&from, joint.seeds);
    Values saved = Saved(*joint.graph, from);
    Append(&from, saved);
    read_ = ReadBetween(*joint.graph, from, results_);
    Invariants();
    RETURN_IF_ERROR(Entries(joint, saved));
    ASSIGN_OR_RETURN(uint32_t back,
                     ExtractGraph(*joint.graph, params_, results_, Keep::kNone, body_.name + ".back"));
    if (is_.counted) in_.push_back(node_.in.back());
    ASSIGN_OR_RETURN(Values out, sink_.Node(*node_.op, in_, BackAttrs(back)));
    Values gradients(node_.in.size(), kNoValue);
    for (size_t i = 0, next = 0; i < is_.given; i++) {
      if (request_.wanted[i]) gradients[i] = out[next];
      next += active_[i];
    }
    return gradients;
  }

 private:
  // Marks operands that depend on an x. A carried value may become active in the body.
  void FindActive() {
    active_.assign(request_.wanted.begin(), request_.wanted.begin() + static_cast<ptrdiff_t>(is_.given));
    for (bool more = true; more;) {
      more = false;
      Flags active(body_.values.size());
      for (size_t i = 0; i < is_.given; i++) active[body_.params[i]] = active_[i];
      MarkActive(body_, 0, static_cast<NodeId>(body_.nodes.size()), &active);
      for (size_t i = 0; i < is_.carry; i++) {
        more = more || (active[body_.results[i]] && !active_[i]);
        if (active[body_.results[i]]) active_[i] = true;
      }
    }
  }

  Flags Seeded() const {
    Flags seeded;
    for (size_t i = 0; i < body_.results.size(); i++)
      seeded.push_back(i < is_.carry ? active_[i] : request_.cotangents[i] != kNoValue);
    return seeded;
  }

  // The carried values of the backward scan: cotangents of carried values, and sums for invariants.
  absl::Status Carry(const Joint& joint) {
    absl::Status status;
    NodeWriter writer(graph_, &status), body(*joint.graph, &status);
    Values stacked;
    for (size_t i = 0, next = 0; i < is_.given; i++) {
      if (!active_[i]) continue;
      ValueId dx = joint.dxs[next], param = kNoValue, start = kNoValue;
      if (i < is_.carry) {
        param = joint.seeds[next];
        start = request_.cotangents[i];
      } else if (i < is_.cut) {
        param = body.Param(body_.values[body_.params[i]].type);
        dx = body.Node("add", {param, dx});
      }
      next++;
      if (i >= is_.cut) {
        stacked.push_back(dx);
        continue;
      }
      params_.push_back(param);
      in_.push_back(start != kNoValue ? start
                                      : writer.Filled(TensorType(graph_.values[node_.in[i]].type), 0));
      results_.push_back(dx);
    }
    carried_ = results_.size();
    Append(&results_, stacked);
    return status;
  }

  // Results of expensive ops of the forward run that the gradient reads. Cheap ones are recomputed.
  Values Saved(const Graph& joint, const Values& from) const {
    Flags needed = NeededNodes(joint, from, results_, {}), read = ReadBetween(joint, from, results_);
    Values saved;
    for (NodeId n = 0; n < body_.nodes.size(); n++) {
      const OpDef& op = *body_.nodes[n].op;
      if (!needed[n] || !IsClose(op) || Has(op, Trait::kElementwise)) continue;
      for (ValueId v : body_.nodes[n].out)
        if (read[v]) saved.push_back(v);
    }
    return saved;
  }

  bool Passes(size_t i) const { return i < is_.carry && body_.results[i] == body_.params[i]; }

  void Invariants() {
    for (size_t i = 0; i < is_.cut; i++) {
      if (!read_[body_.params[i]] || (i < is_.carry && !Passes(i))) continue;
      params_.push_back(body_.params[i]);
      in_.push_back(node_.in[i]);
    }
    invariants_ = in_.size() - carried_;
  }

  // The scanned operands of the backward scan: values stacked or scanned by the forward node, and cotangents.
  absl::Status Entries(const Joint& joint, const Values& saved) {
    Values stacked;
    for (size_t i = 0; i < is_.carry; i++)
      if (read_[body_.params[i]] && !Passes(i)) stacked.push_back(body_.params[i]);
    for (ValueId v : saved)
      if (read_[v]) stacked.push_back(v);
    ASSIGN_OR_RETURN(Values at, Stack(stacked));
    Append(&params_, stacked);
    Append(&in_, at);
    for (size_t i = is_.cut; i < is_.given; i++) {
      if (!read_[body_.params[i]]) continue;
      params_.push_back(body_.params[i]);
      in_.push_back(node_.in[i]);
    }
    size_t next = static_cast<size_t>(
        std::count(active_.begin(), active_.begin() + static_cast<ptrdiff_t>(is_.carry), true));
    for (size_t i = is_.carry; i < body_.results.size(); i++) {
      if (request_.cotangents[i] == kNoValue) continue;
      params_.push_back(joint.seeds[next++]);
      in_.push_back(request_.cotangents[i]);
    }
    return absl::OkStatus();
  }

  // All entries of values of the body, as results of the forward node, which is extended by missing ones.
  absl::StatusOr<Values> Stack(const Values& values) {
    Values results = body_.results;
    std::vector<size_t> at;
    for (ValueId v : values) {
      auto found = std::find(results.begin() + static_cast<ptrdiff_t>(is_.carry), results.end(), v);
      at.push_back(static_cast<size_t>(found - results.begin()));
      if (found == results.end()) results.push_back(v);
    }
    if (results.size() > body_.results.size()) {
      ASSIGN_OR_RETURN(uint32_t body,
                       ExtractGraph(body_, body_.params, results, Keep::kEffects, body_.name + ".keep"));
      RETURN_IF_ERROR(
          sink_.ExtendNode(request_.node, node_.in, WithBodies(*node_.op, node_.attrs, {&body, 1})));
    }
    Values out;
    for (size_t i : at) out.push_back(graph_.nodes[request_.node].out[i]);
    return out;
  }

  Attrs BackAttrs(uint32_t body) const {
    int64_t length = IntAttr(node_.attrs, "length", -1);
    if (length == -1) length = graph_.values[node_.in[is_.cut]].type.dims[0];
    auto count = [](size_t n) { return static_cast<int64_t>(n); };
    return MakeAttrs({{"body", KEEL_ATTR_GRAPH, body},
                      {"carry", KEEL_ATTR_I64, count(carried_)},
                      {"counted", KEEL_ATTR_BOOL, is_.counted},
                      {"invariants", KEEL_ATTR_I64, count(invariants_)},
                      {"length", KEEL_ATTR_DIM, length},
                      {"reverse", KEEL_ATTR_BOOL, !IntAttr(node_.attrs, "reverse")}});
  }

  GraphSink& sink_;
  Graph& graph_;
  const ControlNode& request_;
  const Node& node_;
  const Scan is_;
  const Graph& body_;
  Flags active_, read_;           // by operand; by value of the joint graph
  Values params_, in_, results_;  // parameters and results of the backward body; operands of its node
  size_t carried_ = 0, invariants_ = 0;
};

absl::StatusOr<Values> GradientOfBranches(GraphSink& sink, const ControlNode& request) {
  return BranchGradient(sink, request.original, request.wanted, request.cotangents);
}
absl::StatusOr<Values> GradientOfScan(GraphSink& sink, const ControlNode& request) {
  return ScanGradient(sink, request).Run();
}

constexpr struct {
  std::string_view op;
  absl::StatusOr<Values> (*back)(GraphSink&, const ControlNode&);
} kKinds[] = {{"cond", GradientOfBranches},
              {"switch", GradientOfBranches},
              {"scan", GradientOfScan},
              {"while", WhileGradient}};

}  // namespace

absl::Status CheckReads(const Graph& graph, NodeId forward) {
  auto last = static_cast<NodeId>(graph.nodes.size() - 1);
  std::vector<uint32_t> reads = EffectsOf(graph, graph.nodes[last]).reads;
  for (NodeId n = forward; n < last && !reads.empty(); n++)
    if (Writes(graph, graph.nodes[n], reads))
      return Annotate(Unimplemented("its gradient reads variable '", graph.module->variables[reads[0]].name,
                                    "' again, and '", graph.NodeName(n), "' writes it in between"),
                      kErrorHint, "read the variable before the node and pass it as an operand");
  return absl::OkStatus();
}

absl::StatusOr<Values> BranchGradient(GraphSink& sink, const Node& node, const Flags& wanted,
                                      const Values& cotangents) {
  Module& module = *sink.graph().module;
  Flags ys, xs(wanted.begin() + 1, wanted.end()), read(xs.size());
  for (ValueId c : cotangents) ys.push_back(c != kNoValue);
  std::vector<uint32_t> bodies = BodiesOf(*node.op, node.attrs);
  std::vector<Joint> joints;
  for (uint32_t number : bodies) {
    const Graph& body = *module.graphs[number];
    ASSIGN_OR_RETURN(Joint joint, Join(body, ys, xs));
    Values from = body.params;
    Append(&from, joint.seeds);
    Flags reads = ReadBetween(*joint.graph, from, joint.dxs);
    for (size_t i = 0; i < read.size(); i++) read[i] = read[i] || reads[body.params[i]];
    joints.push_back(std::move(joint));
  }
  Values in{node.in[0]};
  for (size_t i = 0; i < read.size(); i++)
    if (read[i]) in.push_back(node.in[i + 1]);
  for (ValueId c : cotangents)
    if (c != kNoValue) in.push_back(c);
  for (size_t k = 0; k < bodies.size(); k++) {
    const Graph& body = *module.graphs[bodies[k]];
    Values params;
    for (size_t i = 0; i < read.size(); i++)
      if (read[i]) params.push_back(body.params[i]);
    Append(&params, joints[k].seeds);
    ASSIGN_OR_RETURN(bodies[k],
                     ExtractGraph(*joints[k].graph, params, joints[k].dxs, Keep::kNone, body.name + ".back"));
  }
  ASSIGN_OR_RETURN(Values out, sink.Node(*node.op, in, WithBodies(*node.op, node.attrs, bodies)));
  Values gradients(wanted.size(), kNoValue);
  for (size_t i = 0, next = 0; i < wanted.size(); i++)
    if (wanted[i]) gradients[i] = out[next++];
  return gradients;
}

absl::StatusOr<Values> ControlGradient(GraphSink& sink, const ControlNode& request) {
  for (const auto& kind : kKinds) {
    if (kind.op != OpName(*sink.graph().nodes[request.node].op)) continue;
    ASSIGN_OR_RETURN(Values gradients, kind.back(sink, request));
    RETURN_IF_ERROR(CheckReads(sink.graph(), request.node));
    return gradients;
  }
  return NotFound("the gradient of this control op is not defined");
}

}  // namespace keel
