// bodies.cc: graphs called by nodes: their types, and the order of calls.

#include <algorithm>

#include "kernel/language/graph/graph.h"

namespace keel {
namespace {

// Appends a graph after its callees. Uses an explicit stack: in an invalid module, calls may nest as
// deep as there are graphs.
absl::Status Append(const Module& m, uint32_t start, std::vector<uint8_t>* state,
                    std::vector<uint32_t>* order) {
  enum : uint8_t { kNew, kOpen, kDone };
  std::vector<uint32_t> stack{start};
  while (!stack.empty()) {
    uint32_t g = stack.back();
    if ((*state)[g] != kNew) {
      stack.pop_back();
      if ((*state)[g] == kOpen) order->push_back(g);
      (*state)[g] = kDone;
      continue;
    }
    (*state)[g] = kOpen;
    size_t first = stack.size();
    for (const Node& node : m.graphs[g]->nodes)
      for (uint32_t body : BodiesOf(node.attrs)) {
        if (body >= m.graphs.size())
          return Invalid("graph '", m.graphs[g]->name, "' calls graph ", body, ", which does not exist");
        if ((*state)[body] == kOpen) return Invalid("graph '", m.graphs[body]->name, "' calls itself");
        if ((*state)[body] == kNew) stack.push_back(body);
      }
    std::reverse(stack.begin() + static_cast<ptrdiff_t>(first), stack.end());
  }
  return absl::OkStatus();
}

}  // namespace

void ForEachBody(Attr& attr, absl::FunctionRef<void(int64_t&)> change) {
  if (attr.value.kind == KEEL_ATTR_GRAPH && attr.value.i >= 0) change(attr.value.i);
  if (attr.value.kind != KEEL_ATTR_GRAPHS) return;
  for (int64_t& body : attr.value.list) change(body);
}

std::vector<uint32_t> BodiesOf(const Attrs& attrs) {
  std::vector<uint32_t> bodies;
  for (const Attr& a : attrs) {
    if (a.value.kind == KEEL_ATTR_GRAPH && a.value.i >= 0) bodies.push_back(static_cast<uint32_t>(a.value.i));
    if (a.value.kind != KEEL_ATTR_GRAPHS) continue;
    for (int64_t g : a.value.list) bodies.push_back(static_cast<uint32_t>(g));
  }
  return bodies;
}

std::vector<uint32_t> BodiesOf(const OpDef& op, const Attrs& attrs) {
  std::vector<uint32_t> bodies;
  for (const AttrInfo& info : OpAttrs(op))
    for (const Attr& a : attrs)
      if (a.name == info.name)
        for (uint32_t body : BodiesOf(Attrs{a})) bodies.push_back(body);
  return bodies;
}

absl::StatusOr<std::vector<uint32_t>> CallOrder(const Module& m) {
  std::vector<uint8_t> state(m.graphs.size());
  std::vector<uint32_t> order;
  for (uint32_t g = 0; g < m.graphs.size(); g++) RETURN_IF_ERROR(Append(m, g, &state, &order));
  return order;
}

absl::StatusOr<GraphTypes> Module::BodyTypes(int64_t number) const {
  if (number < 0 || static_cast<size_t>(number) >= graphs.size())
    return Annotate(
        NotFound("its body is graph ", number, ", but the module has only ", graphs.size(), " so far"),
        kErrorHint, "add a graph before the nodes that call it");
  const Graph& body = *graphs[static_cast<size_t>(number)];
  GraphTypes signature;
  signature.name = body.name;
  for (ValueId v : body.params) signature.params.push_back(body.values[v].type);
  for (ValueId v : body.results) signature.results.push_back(body.values[v].type);
  return signature;
}

bool IsBodyOfCall(const Module& m, std::string_view graph) {
  for (const auto& caller : m.graphs)
    for (const Node& node : caller->nodes)
      if (IsTypedByGraph(*node.op) && m.graphs[BodiesOf(node.attrs)[0]]->name == graph) return true;
  return false;
}

absl::Status CheckIsolated(const Graph& body) {
  if (body.constant_values.empty()) return absl::OkStatus();
  ValueId first = kNoValue;
  for (const auto& [constant, value] : body.constant_values) first = std::min(first, value);
  return Annotate(Invalid("graph '", body.name, "' contains the constant ", body.ValueName(first),
                          " and cannot be a body of a call"),
                  kErrorHint, "make it a parameter, and pass the constant as an operand");
}

}  // namespace keel
