// verify.h: rechecks every invariant of a module from scratch, for tests and fuzzers. The rules are numbered
// as in kernel/language/graph/README.md.
#pragma once

#include "kernel/base/hash.h"
#include "kernel/language/dims/rule.h"
#include "kernel/language/graph/graph.h"
#include "kernel/language/graph/module_index.h"
#include "kernel/language/graph/names.h"
#include "kernel/language/graph/types.h"

namespace keel::test {

inline absl::Status CheckValue(const Module& m, const Graph& g, ValueId id) {
  const Value& v = g.values[id];
  RETURN_IF_ERROR(CheckType(absl::StrCat("value '", g.ValueName(id), "'"), v.type, m.dims));
  if (v.kind == ValueKind::kParam && (v.index >= g.params.size() || g.params[v.index] != id))
    return Invalid("value ", id, " claims to be parameter ", v.index, ", but is not");
  if (v.kind == ValueKind::kConstant && v.index >= m.constants.size())
    return Invalid("value ", id, " is constant ", v.index, ", which does not exist");
  if (v.kind == ValueKind::kConstant && !(m.constants[v.index].type == v.type))
    return Invalid("value '", g.ValueName(id), "' does not have its constant's type");
  bool result = v.kind == ValueKind::kResult;
  if (result && (v.index >= g.nodes.size() || v.result >= g.nodes[v.index].out.size() ||
                 g.nodes[v.index].out[v.result] != id))
    return Invalid("value ", id, " claims to be a result of node ", v.index, ", but is not");
  return absl::OkStatus();
}

inline absl::Status CheckNames(const Graph& g) {
  HashSet<std::string_view> seen;
  for (ValueId id = 0; id < g.values.size(); id++) {
    const std::string& name = g.values[id].name;
    if (name.empty()) continue;
    RETURN_IF_ERROR(CheckName("a value", name));
    if (!seen.insert(name).second) return Invalid("two values are called '", name, "'");
    auto it = g.by_name.find(name);
    if (it == g.by_name.end() || it->second != id) return Invalid("the name index lacks '", name, "'");
  }
  return absl::OkStatus();
}

// Rule 1: operands precede their nodes. (Results of nodes are in order, so node ids suffice.)
inline absl::Status CheckOperands(const Graph& g, NodeId id) {
  for (ValueId v : g.nodes[id].in) {
    if (v == kNoValue) continue;
    if (v >= g.values.size()) return Invalid("operand ", v, " does not exist");
    if (g.values[v].kind == ValueKind::kResult && g.values[v].index >= id)
      return Invalid("operand '", g.ValueName(v), "' is computed by node ", g.values[v].index,
                     ", which is not earlier");
  }
  return absl::OkStatus();
}

// Rules 2 to 4: arity, dtypes and dims match the op; stored types are equal or more specific.
inline absl::Status CheckNode(const Module& m, DimTable& dims, const Graph& g, NodeId id) {
  const Node& node = g.nodes[id];
  RETURN_IF_ERROR(CheckOperands(g, id));
  std::vector<Operand> operands(node.in.size());
  for (size_t i = 0; i < node.in.size(); i++) {
    operands[i].kind = node.in[i] == kNoValue ? Operand::kAbsent : Operand::kTyped;
    if (node.in[i] != kNoValue) operands[i].type = g.values[node.in[i]].type;
  }
  Attrs attrs = node.attrs;
  RETURN_IF_ERROR(CanonicalAttrs(MakeFacts(*node.op), dims, &attrs));
  if (!(attrs == node.attrs)) return Invalid("attributes are not sorted, or include defaults");
  Inferred inferred;
  RETURN_IF_ERROR(
      Infer(*node.op, operands, node.attrs, dims, &inferred, &m.index->graph_types, &m.index->var_types));
  if (IsTypedByGraph(*node.op)) RETURN_IF_ERROR(CheckIsolated(*m.graphs[BodiesOf(node.attrs)[0]]));
  if (inferred.results.size() != node.out.size())
    return Invalid(OpName(*node.op), " has ", inferred.results.size(), " results, the node ",
                   node.out.size());
  for (size_t i = 0; i < node.out.size(); i++) {
    if (node.out[i] >= g.values.size()) return Invalid("result ", i, " does not exist");
    RETURN_IF_ERROR(
        MergeTypes(absl::StrCat("result ", i), inferred.results[i], g.values[node.out[i]].type, dims)
            .status());
  }
  return absl::OkStatus();
}

inline absl::Status CheckGraph(const Module& m, DimTable& dims, const Graph& g) {
  if (g.depth > kMaxCallDepth || g.expanded > kMaxNodes)
    return Exhausted("has calls ", g.depth, " deep and ", g.expanded, " nodes with bodies; the limits are ",
                     kMaxCallDepth, " and ", kMaxNodes);
  for (ValueId id = 0; id < g.values.size(); id++) RETURN_IF_ERROR(CheckValue(m, g, id));
  RETURN_IF_ERROR(CheckNames(g));
  for (NodeId id = 0; id < g.nodes.size(); id++) {
    absl::Status s = CheckNode(m, dims, g, id);
    if (s.ok()) continue;
    std::string name = g.NodeName(id);
    return Annotate(Invalid("node '", name, "': ", s.message()), kErrorNode, name);
  }
  if (g.results.size() != g.result_names.size()) return Invalid("results and their names differ in number");
  for (ValueId v : g.results)
    if (v >= g.values.size()) return Invalid("result ", v, " does not exist");
  return absl::OkStatus();
}

inline absl::Status CheckConstants(const Module& m) {
  for (const Constant& c : m.constants) {
    RETURN_IF_ERROR(CheckType(absl::StrCat("constant '", c.name, "'"), c.type, m.dims));
    ASSIGN_OR_RETURN(uint64_t bytes, BytesOf(c.name, c.type));
    if (bytes != c.bytes) return Invalid("constant '", c.name, "' takes ", bytes, " bytes but has ", c.bytes);
  }
  return absl::OkStatus();
}

inline absl::Status CheckVariables(const Module& m) {
  HashSet<std::string_view> seen;
  for (const ModuleVariable& v : m.variables) {
    RETURN_IF_ERROR(CheckName("a variable", v.name));
    if (!seen.insert(v.name).second) return Invalid("two variables are called '", v.name, "'");
    if (!v.storage) return Invalid("variable '", v.name, "' has no storage");
    std::span<const int64_t> shape = v.storage->shape();
    if (v.type != TensorType{v.storage->dtype(), Dims(shape.begin(), shape.end())})
      return Invalid("variable '", v.name, "' does not have the type of its storage");
  }
  return absl::OkStatus();
}

// Errors name the node and the reason. Threads may verify one module at the same time.
inline absl::Status Verify(const Module& m) {
  DimTable dims(m.dims);  // a copy: inference may add to it
  RETURN_IF_ERROR(CheckConstants(m));
  RETURN_IF_ERROR(CheckVariables(m));
  RETURN_IF_ERROR(CallOrder(m).status());
  for (const auto& g : m.graphs)
    if (absl::Status s = CheckGraph(m, dims, *g); !s.ok())
      return Annotate(Invalid("graph '", g->name, "': ", s.message()), kErrorNode, ErrorFact(s, kErrorNode));
  for (const auto& g : m.graphs)
    for (const std::string& rule : g->rules) RETURN_IF_ERROR(ParseRule(rule, dims).status());
  for (const Entry& e : m.entries)
    if (e.graph >= m.graphs.size()) return Invalid("entry '", e.name, "' names a graph that does not exist");
  return absl::OkStatus();
}

}  // namespace keel::test
