// graph.cc: construction of a graph: parameters, constants, nodes and results.

#include "kernel/language/graph/graph.h"

#include <algorithm>

#include "absl/strings/ascii.h"

#include "kernel/base/hash.h"
#include "kernel/language/dims/rule.h"
#include "kernel/language/graph/module_index.h"
#include "kernel/language/graph/names.h"
#include "kernel/language/graph/types.h"

namespace keel {
namespace {

absl::Status CheckNewName(const Graph& g, std::string_view what, std::string_view name) {
  RETURN_IF_ERROR(CheckName(what, name));
  if (!g.by_name.contains(name) && !g.nodes_by_name.contains(name)) return absl::OkStatus();
  return Error(absl::StatusCode::kAlreadyExists, "graph '", g.name, "' already has a value '", name,
               "'; names must be unique within a graph");
}

absl::Status CheckValueCount(const Graph& g, size_t more) {
  if (g.values.size() + more <= 4 * g.limit) return absl::OkStatus();
  return Exhausted("graph '", g.name, "' would have more than ", 4 * g.limit, " values");
}

ValueId Append(Graph& g, Value value) {
  auto id = static_cast<ValueId>(g.values.size());
  if (!value.name.empty()) g.by_name.emplace(value.name, id);
  g.values.push_back(std::move(value));
  return id;
}

std::string FreshName(const Graph& g, std::string_view stem, size_t number) {
  for (;; number++)
    if (std::string name = absl::StrCat(stem, number); !g.by_name.contains(name)) return name;
}

absl::Status FillOperands(const Graph& g, const std::vector<ValueId>& in, std::vector<Operand>* out) {
  out->resize(in.size());
  for (size_t i = 0; i < in.size(); i++) {
    Operand& o = (*out)[i];
    o.kind = in[i] == kNoValue ? Operand::kAbsent : Operand::kTyped;
    if (in[i] == kNoValue) continue;
    if (in[i] >= g.values.size())
      return Invalid("operand ", i, " is value ", in[i], " but the graph has only ", g.values.size(),
                     " values so far");
    o.type = g.values[in[i]].type;
  }
  return absl::OkStatus();
}

// Merges declared types into inferred ones, and checks names and limits of all results.
absl::Status CheckResults(const Graph& g, std::string_view op, const std::vector<std::string>& names,
                          const std::vector<TensorType>& declared, std::vector<TensorType>* types) {
  size_t count = types->size();
  if (names.size() > std::max<size_t>(count, 1))
    return Invalid(op, " has ", count, " results but got ", names.size(), " names");
  if (!declared.empty() && declared.size() != count)
    return Invalid(op, " has ", count, " results but ", declared.size(), " types are declared");
  RETURN_IF_ERROR(CheckValueCount(g, count));
  HashSet<std::string_view> seen;
  for (const std::string& name : names) {
    if (name.empty()) continue;
    RETURN_IF_ERROR(CheckNewName(g, "a result", name));
    if (names.size() > 1 && !seen.insert(name).second)
      return Invalid("two results of one node are called '", name, "'");
  }
  const DimTable& dims = g.module->dims;
  for (size_t i = 0; i < count; i++) {
    TensorType& type = (*types)[i];
    if (!declared.empty() && !(type == declared[i])) {
      ASSIGN_OR_RETURN(type, MergeTypes(absl::StrCat("result ", i, " of ", op), type, declared[i], dims));
    }
    if (!CheckType(op, type, dims).ok()) return CheckType(absl::StrCat("result ", i, " of ", op), type, dims);
  }
  return absl::OkStatus();
}

// A graph that is a body is frozen.
absl::Status CheckNotBody(const Graph& g) {
  if (!g.called) return absl::OkStatus();
  return Annotate(Error(absl::StatusCode::kFailedPrecondition, "graph '", g.name,
                        "' is the body of a call: it cannot be changed"),
                  kErrorHint, "finish a graph before other graphs call it");
}

// A size that a run finds in a body has no name outside, where each run of the body may find another one.
absl::Status CheckSizesStay(const OpDef& op, const Graph& body) {
  for (size_t i = 0; i < body.results.size(); i++)
    for (Dim d : body.values[body.results[i]].type.dims)
      if (body.Makes(d))
        return Annotate(Unimplemented("graph '", body.name, "', a body of ", OpName(op), ", returns ",
                                      body.ValueName(body.results[i]), ": ",
                                      Print(body.values[body.results[i]].type, body.module->dims),
                                      ", whose size only a run of the body knows"),
                        kErrorHint,
                        "return a value of known size, such as a sum, or apply the op outside of the body");
  return absl::OkStatus();
}

// Depth and size including the bodies of a new node. Both are limited, which bounds the work for any file.
absl::Status CountBodies(const Graph& g, const OpDef& op, const Attrs& attrs, uint32_t* depth,
                         uint64_t* expanded) {
  *depth = g.depth;
  *expanded = g.expanded + 1;
  for (uint32_t number : BodiesOf(attrs)) {
    RETURN_IF_ERROR(g.module->BodyTypes(number).status());
    const Graph& body = *g.module->graphs[number];
    if (IsTypedByGraph(op) && number == BodiesOf(attrs)[0]) RETURN_IF_ERROR(CheckIsolated(body));
    if (body.new_sizes) RETURN_IF_ERROR(CheckSizesStay(op, body));
    *depth = std::max(*depth, body.depth + 1);
    *expanded += body.expanded;
  }
  if (*depth > kMaxCallDepth)
    return Exhausted("calls would nest ", *depth, " deep; the limit is ", kMaxCallDepth);
  if (*expanded > g.limit)
    return Exhausted("graph '", g.name, "' would have more than ", g.limit,
                     " nodes, the limit, with the bodies of its calls");
  return absl::OkStatus();
}

// The node keeps the symbol for its size that a declared type has, or that inference made.
void NameSize(const Graph& g, const OpDef& op, const std::vector<TensorType>& declared,
              const Inferred& inferred, Attrs* attrs) {
  const std::string_view name = SizeAttr(op);
  if (name.empty() || FindAttr(*attrs, name)) return;
  AttrValue size = *FindAttr(inferred.attrs, name);
  if (!declared.empty()) {
    const Dims &own = inferred.results[0].dims, &wanted = declared[0].dims;
    const auto d = static_cast<size_t>(std::ranges::find(own, size.i) - own.begin());
    if (d < wanted.size() && g.module->dims.symbol_index(wanted[d])) size.i = wanted[d];
  }
  attrs->push_back({std::string(name), std::move(size)});
  SortAttrs(attrs);
}

absl::Status PrepareNode(const Graph& g, const OpDef& op, const std::vector<ValueId>& in, Attrs* attrs,
                         const std::vector<std::string>& names, const std::vector<TensorType>& declared) {
  ModuleIndex& index = *g.module->index;
  const OpFacts& facts = index.Facts(op);
  if (g.nodes.size() >= g.limit) return Exhausted("graph '", g.name, "' has ", g.limit, " nodes, the limit");
  RETURN_IF_ERROR(CanonicalAttrs(facts, g.module->dims, attrs));
  for (uint32_t body : BodiesOf(*attrs))
    if (body < g.module->graphs.size() && g.module->graphs[body].get() == &g)
      return Invalid("graph '", g.name, "' would call itself");
  RETURN_IF_ERROR(FillOperands(g, in, &index.operands));
  RETURN_IF_ERROR(Infer(op, index.operands, *attrs, g.module->dims, &index.inferred, &index.graph_types,
                        &index.var_types));
  NameSize(g, op, declared, index.inferred, attrs);
  return CheckResults(g, facts.name, names, declared, &index.inferred.results);
}

}  // namespace

bool FailsOnData(const Graph& g, const Node& node) {
  bool typed = !node.in.empty() && node.in[0] != kNoValue;
  return MayFail(*node.op, typed ? g.values[node.in[0]].type.dtype : DType::kNone);
}

Effects EffectsOf(const Graph& g, const Node& node) {
  Effects e = OwnEffects(*node.op, node.attrs);
  e.fails = FailsOnData(g, node);
  for (uint32_t body : BodiesOf(node.attrs)) e.Add(g.module->graphs[body]->effects);
  return e;
}

void Graph::Reserve(size_t value_count, size_t node_count) {
  values.reserve(value_count);
  nodes.reserve(node_count);
  by_name.reserve(value_count);
}

absl::StatusOr<ValueId> Graph::AddParam(std::string_view name, TensorType type) {
  std::string own = name.empty() ? FreshName(*this, "p", params.size()) : std::string(name);
  RETURN_IF_ERROR(CheckNotBody(*this));
  RETURN_IF_ERROR(CheckNewName(*this, "a parameter", own));
  RETURN_IF_ERROR(CheckValueCount(*this, 1));
  if (params.size() >= 65536) return Exhausted("graph '", this->name, "' has 65536 parameters, the limit");
  RETURN_IF_ERROR(CheckType(absl::StrCat("parameter '", own, "'"), type, module->dims));
  auto number = static_cast<uint32_t>(params.size());
  params.push_back(Append(*this, {ValueKind::kParam, number, 0, std::move(type), std::move(own)}));
  return params.back();
}

absl::Status Graph::AddRule(std::string_view text) {
  constexpr size_t kMaxRules = 256;
  RETURN_IF_ERROR(CheckNotBody(*this));
  if (rules.size() == kMaxRules) return Exhausted("a graph has at most ", kMaxRules, " size rules");
  std::string rule(text);
  absl::RemoveExtraAsciiWhitespace(&rule);
  RETURN_IF_ERROR(ParseRule(rule, module->dims).status());
  rules.push_back(std::move(rule));
  return absl::OkStatus();
}

absl::StatusOr<ValueId> Graph::AddConstant(uint32_t constant) {
  if (auto it = constant_values.find(constant); it != constant_values.end()) return it->second;
  if (constant >= module->constants.size())
    return Invalid("there is no constant ", constant, "; the module has ", module->constants.size());
  RETURN_IF_ERROR(CheckNotBody(*this));
  const Constant& c = module->constants[constant];
  if (!c.name.empty()) RETURN_IF_ERROR(CheckNewName(*this, "a constant", c.name));
  RETURN_IF_ERROR(CheckValueCount(*this, 1));
  ValueId id = Append(*this, {ValueKind::kConstant, constant, 0, c.type, c.name});
  constant_values.emplace(constant, id);
  return id;
}

absl::StatusOr<ValueId> Graph::AddScalar(DType dtype, const void* element) {
  return AddConstant(ScalarOf(dtype, element));
}

absl::StatusOr<ValueId> Graph::AddConstant(Constant constant) {
  ASSIGN_OR_RETURN(uint32_t number, module->AddConstant(std::move(constant)));
  return AddConstant(number);
}

absl::StatusOr<NodeId> Graph::AddNode(const OpDef* op, std::vector<ValueId> in, Attrs attrs,
                                      const std::vector<std::string>& names,
                                      const std::vector<TensorType>& declared) {
  auto id = static_cast<NodeId>(nodes.size());
  uint32_t deep = 0;
  uint64_t all = 0;
  absl::Status s = CheckNotBody(*this);
  if (s.ok()) s = PrepareNode(*this, *op, in, &attrs, names, declared);
  if (s.ok()) s = CountBodies(*this, *op, attrs, &deep, &all);
  if (!s.ok()) {
    std::string node = names.empty() || names[0].empty() ? ResultName(id, 0) : names[0];
    absl::Status full = Reword(s, absl::StrCat("node '", node, "': ", s.message()));
    return Annotate(Annotate(full, kErrorOp, OpName(*op)), kErrorNode, node);
  }
  std::vector<TensorType>& types = module->index->inferred.results;
  Node node{op, std::move(in), {}, std::move(attrs), scope, ""};
  if (types.empty() && !names.empty() && !names[0].empty()) {
    node.name = names[0];
    nodes_by_name.emplace(node.name, id);
  }
  node.out.reserve(types.size());
  for (uint32_t i = 0; i < types.size(); i++) {
    Value v{ValueKind::kResult, id, i, std::move(types[i]), i < names.size() ? names[i] : std::string()};
    node.out.push_back(Append(*this, std::move(v)));
  }
  nodes.push_back(std::move(node));
  depth = deep;
  expanded = all;
  new_sizes = new_sizes || HasNewSize(*op);
  for (uint32_t body : BodiesOf(nodes.back().attrs)) {
    module->graphs[body]->called = true;
    new_sizes = new_sizes || module->graphs[body]->new_sizes;
  }
  effects.Add(EffectsOf(*this, nodes.back()));
  return id;
}

std::optional<size_t> NewSizeOf(const Node& node, const DimTable& dims) {
  if (!HasNewSize(*node.op)) return std::nullopt;
  const AttrValue* size = FindAttr(node.attrs, SizeAttr(*node.op));
  return size ? dims.symbol_index(size->i) : std::nullopt;
}

bool BodiesMakeSizes(const Module& m, const Attrs& attrs) {
  return std::ranges::any_of(BodiesOf(attrs), [&](uint32_t body) { return m.graphs[body]->new_sizes; });
}

bool Graph::Makes(Dim size) const {
  if (!new_sizes) return false;
  std::vector<size_t> used;
  module->dims.Symbols(size, &used);
  return std::ranges::any_of(nodes, [&](const Node& node) {
    const std::optional<size_t> symbol = NewSizeOf(node, module->dims);
    return symbol && std::ranges::count(used, *symbol) != 0;
  });
}

absl::Status Graph::AddResult(std::string_view name, ValueId value) {
  RETURN_IF_ERROR(CheckNotBody(*this));
  if (value >= values.size())
    return Invalid("result '", name, "' is value ", value, ", which does not exist");
  if (results.size() >= 4096) return Exhausted("graph '", this->name, "' has 4096 results, the limit");
  if (!name.empty()) {
    RETURN_IF_ERROR(CheckName("a result", name));
    for (const std::string& taken : result_names)
      if (taken == name)
        return Error(absl::StatusCode::kAlreadyExists, "graph '", this->name, "' already has a result '",
                     name, "'");
  }
  results.push_back(value);
  result_names.emplace_back(name);
  return absl::OkStatus();
}

absl::Status Graph::NameValue(ValueId id, std::string_view name) {
  if (id >= values.size()) return Invalid("value ", id, " does not exist");
  Value& v = values[id];
  if (v.name == name) return absl::OkStatus();
  if (v.kind == ValueKind::kConstant)
    return Invalid("value ", id, " is a constant and keeps its name, '", v.name, "'");
  RETURN_IF_ERROR(CheckNewName(*this, "a value", name));
  by_name.erase(v.name);
  v.name = std::string(name);
  by_name.emplace(v.name, id);
  return absl::OkStatus();
}

}  // namespace keel
