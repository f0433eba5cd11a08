// while.cc: the gradient of a while, as that of scans.
//
// How often a while runs is only known afterwards, and nothing can be stacked without a length. So its node
// is made to count, and what goes backwards sees it as a switch over nests of counted scans: one scan of at
// most kSteps iterations; kSteps of those; and so on. Each scan keeps what it carries, kSteps times, and
// computes what is inside it again: a loop of kSteps^d iterations keeps d * kSteps times what it carries, and
// runs its body d + 1 times forward. The switch picks the least depth that is enough.
#include "kernel/grad/control.h"
#include "kernel/grad/slice.h"

namespace keel {
namespace {

using Values = std::vector<ValueId>;

constexpr int64_t kSteps = 32;
constexpr int kDepths[] = {1, 2, 3, 7};  // of the branches; the last is enough for 2^35 iterations

int64_t Iterations(int depth) { return depth ? kSteps * Iterations(depth - 1) : 1; }

// A body, or test, that is given one number more behind what it carries; a body counts it up.
uint32_t Wider(const Graph& body, size_t carry, bool counts, absl::Status* status) {
  std::unique_ptr<Graph> wide = CopyOf(body);
  Pen pen(*wide, status);
  ValueId number = pen.Param({DType::kI64, {}});
  Values params = body.params, results = body.results;
  params.insert(params.begin() + static_cast<ptrdiff_t>(carry), number);
  if (counts) results.push_back(pen.Node("add", {number, pen.Int(1)}));
  return pen.ok() ? pen.Take(Cut(*wide, params, results, Keep::kEffects, body.name + ".count")) : 0;
}

// Makes the node carry one number more, the iterations; gives it.
absl::StatusOr<ValueId> Count(GraphSink& sink, NodeId id, const Node& node) {
  auto carry = static_cast<size_t>(IntAttr(node.attrs, "carry"));
  absl::Status status;
  std::vector<uint32_t> bodies = BodiesOf(*node.op, node.attrs);
  for (size_t k = 0; k < bodies.size(); k++)
    bodies[k] = Wider(*sink.graph().module->graphs[bodies[k]], carry, k == 1, &status);
  Values in = node.in;
  in.insert(in.begin() + static_cast<ptrdiff_t>(carry), Pen(sink.graph(), &status).Int(0));
  RETURN_IF_ERROR(status);
  Attrs attrs = WithBodies(*node.op, node.attrs, bodies);
  for (Attr& a : attrs)
    if (a.name == "carry") a.value.i++;
  RETURN_IF_ERROR(sink.Widen(id, std::move(in), std::move(attrs)));
  return sink.graph().nodes[id].out.back();
}

// Graphs that run a body a number of times: of that number, what is carried and the invariants they give what
// is carried afterwards.
class Nests {
 public:
  Nests(Module& module, uint32_t body, size_t carry)
      : module_(module), body_(body), carry_(static_cast<int64_t>(carry)) {}

  uint32_t Branch(int depth) { return Make(depth, false); }
  absl::Status status;

 private:
  // A step is the body of a scan over nests of that depth: it carries how many iterations are left.
  uint32_t Step(int depth) {
    if (!steps_[depth]) steps_[depth] = Make(depth, true);
    return steps_[depth];
  }

  uint32_t Make(int depth, bool step) {
    const Graph& body = *module_.graphs[body_];
    auto number = static_cast<uint32_t>(module_.graphs.size());
    absl::StatusOr<Graph*> graph = NewGraph(module_, body.name + ".nest");
    if (!graph.ok()) return status = graph.status(), 0;
    Pen pen(**graph, &status);
    Values x{pen.Param({DType::kI64, {}})};
    for (ValueId v : body.params) x.push_back(pen.Param(body.values[v].type));
    ValueId count = x[0];
    if (step) {
      count = pen.Node("minimum", {x[0], pen.Int(Iterations(depth))});
      pen.Results({pen.Node("sub", {x[0], count})});
    }
    pen.Results(Scan(pen, depth, count, std::move(x)), depth > 1);
    return number;
  }

  Values Scan(Pen& pen, int depth, ValueId count, Values x) {
    bool outer = depth > 1;
    uint32_t body = outer ? Step(depth - 1) : body_;
    int64_t each = Iterations(depth - 1), carry = carry_ + outer;
    x[0] = count;
    if (outer)
      count = pen.Node("div", {pen.Node("add", {count, pen.Int(each - 1)}), pen.Int(each)});
    else
      x.erase(x.begin());
    x.push_back(count);
    return pen.Nodes("scan", x,
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

// The number of the first branch that runs so many iterations.
ValueId Depth(Pen& pen, ValueId count) {
  ValueId index = kNoValue;
  for (int depth : kDepths) {
    if (depth == std::end(kDepths)[-1]) break;
    ValueId deeper = pen.Node("greater", {count, pen.Int(Iterations(depth))});
    ValueId one = pen.Node("cast", {deeper}, {{"to", KEEL_ATTR_DTYPE, static_cast<int64_t>(DType::kI32)}});
    index = index == kNoValue ? one : pen.Node("add", {index, one});
  }
  return index;
}

}  // namespace

absl::StatusOr<Values> WhileBack(GraphSink& sink, const ControlNode& asked) {
  Graph& graph = sink.graph();
  const Node& node = asked.was;
  ASSIGN_OR_RETURN(uint32_t body, Quiet(*graph.module, BodiesOf(*node.op, node.attrs)[1]));
  ASSIGN_OR_RETURN(ValueId count, Count(sink, asked.node, node));
  graph.scope = node.origin;
  Nests nests(*graph.module, body, asked.cotangents.size());
  Pen pen(graph, &nests.status);
  Node as{nullptr, {Depth(pen, count), count}, {}, Attrs(1), {}, ""};
  as.attrs[0].name = "branches";
  as.attrs[0].value.kind = KEEL_ATTR_GRAPHS;
  for (int depth : kDepths) as.attrs[0].value.list.push_back(nests.Branch(depth));
  RETURN_IF_ERROR(nests.status);
  ASSIGN_OR_RETURN(as.op, graph.module->catalogue->Find("switch", 0));
  as.in.insert(as.in.end(), node.in.begin(), node.in.end());
  std::vector<bool> wanted(2);
  wanted.insert(wanted.end(), asked.wanted.begin(), asked.wanted.end());
  ASSIGN_OR_RETURN(Values gradients, BranchBack(sink, as, wanted, asked.cotangents));
  gradients.erase(gradients.begin(), gradients.begin() + 2);
  return gradients;
}

}  // namespace keel
