// link.cc: an entry of one module becomes an entry of another, with all that it reaches, of keel.h.
//
// How to read it: a Linker copies graphs, those that are called first; constants, variables and dims are
// found again or made anew in the other module. A name that is taken there gets a number.
#include <algorithm>

#include "kernel/api/handles.h"
#include "kernel/base/free_name.h"
#include "kernel/graph/signature.h"
#include "kernel/plugin/body.h"

using namespace keel;

namespace {

class Linker {
 public:
  Linker(Module& to, const Module& from) : to_(to), from_(from), graphs_(from.graphs.size(), -1) {}

  // The number in the other module.
  absl::StatusOr<int64_t> GraphFor(int64_t number) {
    int64_t& there = graphs_[static_cast<size_t>(number)];
    if (there >= 0) return there;
    const Graph& source = *from_.graphs[static_cast<size_t>(number)];
    for (const Node& node : source.nodes)
      for (uint32_t body : BodiesOf(node.attrs)) RETURN_IF_ERROR(GraphFor(body).status());
    std::string name = FreeName(source.name, [&](const std::string& n) { return to_.FindGraph(n).ok(); });
    ASSIGN_OR_RETURN(Graph * made, to_.AddGraph(name));
    RETURN_IF_ERROR(Copy(source, *made));
    made->rules = source.rules;
    ASSIGN_OR_RETURN(there, to_.GraphNumber(name));
    return there;
  }

  absl::Status Cases(const std::string& entry, const std::string& as) {
    for (const Case& c : from_.cases) {
      if (c.entry != entry) continue;
      Case made = c;
      made.entry = as;
      made.name = FreeName(c.name, [&](const std::string& n) {
        return std::ranges::any_of(to_.cases, [&](const Case& other) { return other.name == n; });
      });
      for (auto* side : {&made.inputs, &made.expected})
        for (uint32_t& number : *side) {
          ASSIGN_OR_RETURN(number, ConstantFor(number, nullptr));
        }
      RETURN_IF_ERROR(to_.AddCase(std::move(made)));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Copy(const Graph& source, Graph& made) {
    std::vector<ValueId> values(source.values.size(), kNoValue);
    DimMap map = [&](Dim d) -> absl::StatusOr<Dim> {
      return IsSymbolic(d) ? to_.dims.Parse(from_.dims.Print(d)) : absl::StatusOr<Dim>(d);
    };
    for (ValueId v : source.params) {
      TensorType type = source.values[v].type;
      RETURN_IF_ERROR(MapDims(map, &type));
      ASSIGN_OR_RETURN(values[v], made.AddParam(source.values[v].name, std::move(type)));
    }
    for (ValueId v = 0; v < values.size(); v++) {
      if (source.values[v].kind != ValueKind::kConstant) continue;
      ASSIGN_OR_RETURN(uint32_t number, ConstantFor(source.values[v].index, &source));
      ASSIGN_OR_RETURN(values[v], made.AddConstant(number));
    }
    for (const Node& node : source.nodes) RETURN_IF_ERROR(CopyNode(source, node, map, values, made));
    for (size_t i = 0; i < source.results.size(); i++)
      RETURN_IF_ERROR(made.AddResult(source.result_names[i], values[source.results[i]]));
    return absl::OkStatus();
  }

  absl::Status CopyNode(const Graph& source, const Node& node, const DimMap& map,
                        std::vector<ValueId>& values, Graph& made) {
    std::vector<ValueId> in;
    for (ValueId v : node.in) in.push_back(v == kNoValue ? v : values[v]);
    std::vector<std::string> names{node.name};
    std::vector<TensorType> types;
    if (!node.out.empty()) names.clear();
    for (ValueId v : node.out) {
      names.push_back(source.values[v].name);
      RETURN_IF_ERROR(MapDims(map, &types.emplace_back(source.values[v].type)));
    }
    Attrs attrs = node.attrs;
    RETURN_IF_ERROR(MapDims(map, &attrs));
    for (Attr& a : attrs) RETURN_IF_ERROR(MapNumbers(a.value));
    ASSIGN_OR_RETURN(made.scope, to_.DeviceScope(node.device ? from_.devices[node.device - 1] : ""));
    ASSIGN_OR_RETURN(NodeId id, made.AddNode(node.op, std::move(in), std::move(attrs), names, types));
    for (size_t i = 0; i < node.out.size(); i++) values[node.out[i]] = made.nodes[id].out[i];
    return absl::OkStatus();
  }

  // Graphs and variables that an attribute names.
  absl::Status MapNumbers(AttrValue& value) {
    // Bodies were copied before their callers.
    if (value.kind == KEEL_ATTR_GRAPH) value.i = graphs_[static_cast<size_t>(value.i)];
    if (value.kind == KEEL_ATTR_GRAPHS)
      for (int64_t& body : value.list) body = graphs_[static_cast<size_t>(body)];
    if (value.kind == KEEL_ATTR_VAR) {
      const ModuleVariable& variable = from_.variables[static_cast<size_t>(value.i)];
      ASSIGN_OR_RETURN(value.i, to_.AddVariable(variable.name, variable.storage));
    }
    return absl::OkStatus();
  }

  // The same memory is one constant. `user` (may be null): a graph that brings names of its own.
  absl::StatusOr<uint32_t> ConstantFor(uint32_t number, const Graph* user) {
    Constant c = from_.constants[number];
    auto used = [&](const std::string& name) {
      return user && name != c.name && user->by_name.contains(name);
    };
    for (uint32_t k = 0; c.data && k < to_.constants.size(); k++)
      if (const Constant& same = to_.constants[k];
          same.data == c.data && same.type == c.type && !used(same.name))
        return k;
    if (!c.name.empty())
      c.name = FreeName(c.name, [&](const std::string& n) { return to_.FindConstant(n).ok() || used(n); });
    return to_.AddConstant(std::move(c));
  }

  Module& to_;
  const Module& from_;
  std::vector<int64_t> graphs_;  // by number: that in the other module; -1: not there yet
};

absl::Status Link(Module& to, const Module& from, const char* entry, const char* as) {
  ASSIGN_OR_RETURN(const Entry* found, from.FindEntry(entry ? entry : ""));
  std::string name = as ? as : found->name;
  RETURN_IF_ERROR(CheckName("an entry", name));
  if (to.FindEntry(name).ok())
    return Error(absl::StatusCode::kAlreadyExists, "the module has an entry '", name, "' already");
  Linker linker(to, from);
  ASSIGN_OR_RETURN(int64_t graph, linker.GraphFor(found->graph));
  RETURN_IF_ERROR(to.AddEntry(name, to.graphs[static_cast<size_t>(graph)].get()));
  for (const auto& [key, value] : from.metadata)
    if (key == SignatureKey(found->name)) RETURN_IF_ERROR(to.SetMetadata(SignatureKey(name), value));
  return linker.Cases(found->name, name);
}

}  // namespace

keel_rc keel_module_link(keel_module* m, keel_module* from, const char* entry, const char* as,
                         keel_error** err) {
  return Guard(err, [&]() -> absl::Status {
    RETURN_IF_ERROR(NeedPointer(m, "module"));
    RETURN_IF_ERROR(NeedPointer(from, "the module to link"));
    if (m->state == from->state) return Invalid("a module cannot be linked into itself");
    std::scoped_lock lock(m->state->mutex, from->state->mutex);
    Module& to = *m->state->module;
    size_t graphs = to.graphs.size(), entries = to.entries.size();
    absl::Status linked = Link(to, *from->state->module, entry, as);
    if (!linked.ok() && to.entries.size() == entries && to.graphs.size() > graphs) DropUnused(&to, graphs);
    return linked;
  });
}
