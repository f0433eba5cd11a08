// while.cc: the gradient of a while loop, by nested scans.
//
// The number of iterations of a while loop is only known after it, and stacking requires a known length. The
// forward node is extended to count its iterations. The backward pass treats it as a switch over nests of
// counted scans: one scan of at most kSteps iterations, a scan of kSteps of those, and so on. Each scan
// stacks its carried values, kSteps times, and recomputes its inner scans: a loop of kSteps^d iterations
// stores d * kSteps times the carried values and runs its body d + 1 times forward. The switch selects the
// smallest sufficient depth.
#include "kernel/program/grad/control.h"
#include "kernel/program/grad/slice.h"

namespace keel {
namespace {

using Values = std::vector<ValueId>;

constexpr int64_t kSteps = 32;
constexpr int kDepths[] = {1, 2, 3, 7};  // depths of the branches; the last suffices for 2^35 iterations

int64_t Iterations(int depth) { return depth ? kSteps * Iterations(depth - 1) : 1; }

// A copy of body or test with one more parameter, the count, after the carried values; a body increments it.
uint32_t WithCounter(const Graph& body, size_t carry, bool counts, absl::Status* status) {
  std::unique_ptr<Graph> wide = CopyGraph(body);
  NodeWriter writer(*wide, status);
  ValueId number = writer.Param({DType::kI64, {}});
  Values params = body.params, results = body.results;
  params.insert(params.begin() + static_cast<ptrdiff_t>(carry), number);
  if (counts) results.push_back(writer.Node("add", {number, writer.Int(1)}));
  return writer.ok()
             ? writer.ValueOf(ExtractGraph(*wide, params, results, Keep::kEffects, body.name + ".count"))
             : 0;
}

// Extends the node to carry its iteration count; returns the count.
absl::StatusOr<ValueId> AddCounter(GraphSink& sink, NodeId id, const Node& node) {
  auto carry = static_cast<size_t>(IntAttr(node.attrs, "carry"));
  absl::Status status;
  std::vector<uint32_t> bodies = BodiesOf(*node.op, node.attrs);
  for (size_t k = 0; k < bodies.size(); k++)
    bodies[k] = WithCounter(*sink.graph().module->graphs[bodies[k]], carry, k == 1, &status);
  Values in = node.in;
  in.insert(in.begin() + static_cast<ptrdiff_t>(carry), NodeWriter(sink.graph(), &status).Int(0));
  RETURN_IF_ERROR(status);
  Attrs attrs = WithBodies(*node.op, node.attrs, bodies);
  for (Attr& a : attrs)
    if (a.name == "carry") a.value.i++;
  RETURN_IF_ERROR(sink.ExtendNode(id, std::move(in), std::move(attrs)));
  return sink.graph().nodes[id].out.back();
}

// Graphs that run a body `count` times: from the count, the carried values and the invariants, they compute
// the final carried values.
class NestedScans {
 public:
  NestedScans(Module& module, uint32_t body, size_t carry)
      : module_(module), body_(body), carry_(static_cast<int64_t>(carry)) {}

  uint32_t Branch(int depth) { return Make(depth, false); }
  absl::Status status;

 private:
  // The body of a scan over nests of this depth. It carries the number of remaining iterations.
  uint32_t Step(int depth) {
    if (!steps_[depth]) steps_[depth] = Make(depth, true);
    return steps_[depth];
  }

  uint32_t Make(int depth, bool step) {
    const Graph& body = *module_.graphs[body_];
    auto number = static_cast<uint32_t>(module_.graphs.size());
    absl::StatusOr<Graph*> graph = module_.AddFreshGraph(body.name + ".nest", "");
    if (!graph.ok()) return status = graph.status(), 0;
    NodeWriter writer(**graph, &status);
    Values x{writer.Param({DType::kI64, {}})};
    for (ValueId v : body.params) x.push_back(writer.Param(body.values[v].type));
    ValueId count = x[0];
    if (step) {
      count = writer.Node("minimum", {x[0], writer.Int(Iterations(depth))});
      writer.Results({writer.Node("sub", {x[0], count})});
    }
    writer.Results(Scan(writer, depth, count, std::move(x)), depth > 1);
    return number;
  }

  Values Scan(NodeWriter& writer, int depth, ValueId count, Values x) {
    bool outer = depth > 1;
    uint32_t body = outer ? Step(depth - 1) : body_;
    int64_t each = Iterations(depth - 1), carry = carry_ + outer;
    x[0] = count;
    if (outer)
      count = writer.Node("div", {writer.Node("add", {count, writer.Int(each - 1)}), writer.Int(each)});
    else
      x.erase(x.begin());
    x.push_back(count);
    return writer.Nodes("scan", x,
                        MakeAttrs({{"body", KEEL_ATTR_GRAPH, body},
                                   {"carry", KEEL_ATTR_I64, carry},
                                   {"counted", KEEL_ATTR_BOOL, 1},
                                   {"invariants", KEEL_ATTR_I64, static_cast<int64_t>(x.size()) - 1 - carry},
                                   {"length", KEEL_ATTR_DIM, kSteps}}));
  }

  Module& module_;
  const uint32_t body_;
  const int64_t carry_;
  uint32_t steps_[std::end(kDepths)[-1]] = {};  // by depth
};

// The index of the first branch with enough iterations for `count`.
ValueId BranchIndex(NodeWriter& writer, ValueId count) {
  ValueId index = kNoValue;
  for (int depth : kDepths) {
    if (depth == std::end(kDepths)[-1]) break;
    ValueId deeper = writer.Node("greater", {count, writer.Int(Iterations(depth))});
    ValueId one = writer.Node("cast", {deeper}, {{"to", KEEL_ATTR_DTYPE, static_cast<int64_t>(DType::kI32)}});
    index = index == kNoValue ? one : writer.Node("add", {index, one});
  }
  return index;
}

}  // namespace

absl::StatusOr<Values> WhileGradient(GraphSink& sink, const ControlNode& request) {
  Graph& graph = sink.graph();
  const Node& node = request.original;
  ASSIGN_OR_RETURN(uint32_t body, WithoutEffects(*graph.module, BodiesOf(*node.op, node.attrs)[1]));
  ASSIGN_OR_RETURN(ValueId count, AddCounter(sink, request.node, node));
  graph.scope = node.origin;
  NestedScans nests(*graph.module, body, request.cotangents.size());
  NodeWriter writer(graph, &nests.status);
  Node as{nullptr, {BranchIndex(writer, count), count},
          {},      MakeAttrs({{"branches", KEEL_ATTR_GRAPHS, 0}}),
          {},      ""};
  for (int depth : kDepths) as.attrs[0].value.list.push_back(nests.Branch(depth));
  RETURN_IF_ERROR(nests.status);
  ASSIGN_OR_RETURN(as.op, graph.module->catalogue->Find("switch", 0));
  as.in.insert(as.in.end(), node.in.begin(), node.in.end());
  std::vector<bool> wanted(2);
  wanted.insert(wanted.end(), request.wanted.begin(), request.wanted.end());
  ASSIGN_OR_RETURN(Values gradients, BranchGradient(sink, as, wanted, request.cotangents));
  gradients.erase(gradients.begin(), gradients.begin() + 2);
  return gradients;
}

}  // namespace keel
