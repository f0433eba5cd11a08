// graph.cc: graphs built node by node (keel.h).
#include "kernel/language/graph/graph.h"

#include "kernel/api/handles.h"
#include "kernel/language/graph/constant.h"
#include "kernel/runtime/plugin/build.h"

using namespace keel;

keel_rc keel::GuardModule(keel_module* m, keel_error** err, Needs needs, Given given,
                          absl::FunctionRef<absl::Status(Module&)> body, const char* function) noexcept {
  return Guard(
      err, needs, given,
      [&] {
        std::lock_guard lock(m->state->mutex);
        return body(*m->state->module);
      },
      function);
}

keel_rc keel::GuardGraph(keel_graph* g, keel_error** err, Needs needs, Given given,
                         absl::FunctionRef<absl::Status(Graph&)> body, const char* function) noexcept {
  return Guard(
      err, needs, given,
      [&] {
        std::lock_guard lock(g->owner->mutex);
        return body(*g->graph);
      },
      function);
}

void keel::GiveType(const TensorType& type, keel_dt* dtype, int64_t* shape, int32_t* ndim) {
  if (dtype) *dtype = Info(type.dtype).code;
  if (ndim) *ndim = static_cast<int32_t>(type.dims.size());
  if (shape)
    for (size_t d = 0; d < type.dims.size(); d++) shape[d] = IsSymbolic(type.dims[d]) ? -1 : type.dims[d];
}

keel_rc keel_module_new(keel_context* c, keel_module** out, keel_error** err) {
  return Guard(err, "context out", {c, out}, [&]() -> absl::Status {
    *out = HandleOf(c->state, std::make_shared<Module>(c->state->catalogue));
    return absl::OkStatus();
  });
}

keel_rc keel_module_dim(keel_module* m, const char* expression, keel_dim* out, keel_error** err) {
  return GuardModule(m, err, "module expression out", {m, expression, out},
                     [&](Module& module) { return Give(module.dims.Parse(expression), out); });
}

keel_rc keel_graph_number(keel_graph* g, int64_t* out, keel_error** err) {
  return GuardGraph(g, err, "graph out", {g, out},
                    [&](Graph& graph) { return Give(graph.module->GraphNumber(graph.name), out); });
}

keel_rc keel_graph_param(keel_graph* g, const char* name, keel_dt code, const keel_dim* dims, int32_t ndim,
                         keel_value* out, keel_error** err) {
  return GuardGraph(g, err, "graph dims(ndim) out", {g, dims, ndim, out},
                    [&](Graph& graph) { return Give(BuildParam(graph, name, code, dims, ndim), out); });
}

keel_rc keel_graph_rule(keel_graph* g, const char* rule, keel_error** err) {
  return GuardGraph(g, err, "graph rule", {g, rule},
                    [&](Graph& graph) -> absl::Status { return graph.AddRule(rule); });
}

keel_rc keel_graph_constant(keel_graph* g, const char* name, keel_array* array, keel_value* out,
                            keel_error** err) {
  return Guard(err, "graph array out", {g, array, out}, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(ArrayRef there, InHostMemory("a constant", array));
    ASSIGN_OR_RETURN(Constant constant, BuildConstant(name, std::move(there)));
    std::lock_guard lock(g->owner->mutex);
    return Give(g->graph->AddConstant(std::move(constant)), out);
  });
}

keel_rc keel_graph_node(keel_graph* g, const char* name, const char* op, uint32_t version,
                        const char* const* attr_names, const keel_attr* attrs, uint32_t n_attrs,
                        const keel_value* in, uint32_t n_in, keel_value* out, uint32_t n_out,
                        keel_error** err) {
  return GuardGraph(
      g, err, "graph op attr_names[n_attrs]* attrs[n_attrs] in[n_in] out[n_out]",
      {g, op, attr_names, n_attrs, attrs, n_attrs, in, n_in, out, n_out}, [&](Graph& graph) -> absl::Status {
        keel_node_spec spec{sizeof spec, version, op, name, in, attr_names, attrs, n_in, n_attrs};
        return BuildNode(graph, spec, {out, n_out});
      });
}

keel_rc keel_graph_device(keel_graph* g, const char* device, keel_error** err) {
  return GuardGraph(g, err, "graph", {g}, [&](Graph& graph) -> absl::Status {
    ASSIGN_OR_RETURN(graph.scope.device, graph.module->DeviceScope(device ? device : ""));
    return absl::OkStatus();
  });
}

keel_rc keel_graph_result(keel_graph* g, const char* name, keel_value v, keel_error** err) {
  return GuardGraph(g, err, "graph", {g},
                    [&](Graph& graph) -> absl::Status { return BuildResult(graph, name, v); });
}

keel_rc keel_module_entry(keel_module* m, const char* name, keel_graph* g, keel_error** err) {
  return GuardModule(m, err, "module name graph", {m, name, g}, [&](Module& module) -> absl::Status {
    if (g->owner != m->state.get()) return Invalid("the graph belongs to another module");
    return module.AddEntry(name, g->graph);
  });
}

keel_rc keel_graph_counts(keel_graph* g, uint32_t* nodes, uint32_t* values, uint32_t* params,
                          uint32_t* results, keel_error** err) {
  return GuardGraph(g, err, "graph", {g}, [&](Graph& graph) -> absl::Status {
    for (auto [out, count] :
         {std::pair(nodes, graph.nodes.size()), std::pair(values, graph.values.size()),
          std::pair(params, graph.params.size()), std::pair(results, graph.results.size())})
      if (out) *out = static_cast<uint32_t>(count);
    return absl::OkStatus();
  });
}

keel_rc keel_graph_port(keel_graph* g, int32_t result, uint32_t i, keel_value* out, keel_text** name,
                        keel_error** err) {
  return GuardGraph(g, err, "graph", {g}, [&](Graph& graph) -> absl::Status {
    const std::vector<ValueId>& list = result ? graph.results : graph.params;
    if (i >= list.size())
      return NotFound("graph '", graph.name, "' has ", list.size(), result ? " results" : " parameters");
    std::string text = result ? graph.result_names[i] : "";
    if (name) RETURN_IF_ERROR(Give(text.empty() ? graph.ValueName(list[i]) : text, name));
    if (out) *out = list[i];
    return absl::OkStatus();
  });
}

keel_rc keel_graph_node_at(keel_graph* g, uint32_t i, keel_text** name, const char** op,
                           const keel_value** in, uint32_t* n_in, const keel_value** out, uint32_t* n_out,
                           keel_error** err) {
  return GuardGraph(g, err, "graph", {g}, [&](Graph& graph) -> absl::Status {
    if (i >= graph.nodes.size())
      return NotFound("graph '", graph.name, "' has ", graph.nodes.size(), " nodes; node ", i,
                      " does not exist");
    const Node& node = graph.nodes[i];
    if (name) RETURN_IF_ERROR(Give(graph.NodeName(i), name));
    if (op) *op = OpName(*node.op).data();
    for (auto [list, values, count] : {std::tuple(&node.in, in, n_in), std::tuple(&node.out, out, n_out)}) {
      if (values) *values = list->data();
      if (count) *count = static_cast<uint32_t>(list->size());
    }
    return absl::OkStatus();
  });
}

keel_rc keel_graph_value_at(keel_graph* g, keel_value v, keel_text** name, uint32_t* node, keel_dt* dtype,
                            int64_t* shape, int32_t* ndim, keel_error** err) {
  return GuardGraph(g, err, "graph", {g}, [&](Graph& graph) -> absl::Status {
    RETURN_IF_ERROR(CheckHasValue(graph, v));
    const Value& value = graph.values[v];
    if (name) RETURN_IF_ERROR(Give(graph.ValueName(v), name));
    if (node) *node = value.kind == ValueKind::kResult ? value.index : KEEL_NO_VALUE;
    GiveType(value.type, dtype, shape, ndim);
    return absl::OkStatus();
  });
}

keel_rc keel_graph_find(keel_graph* g, const char* name, keel_value* value, uint32_t* node,
                        keel_error** err) {
  return GuardGraph(g, err, "graph name", {g, name}, [&](Graph& graph) -> absl::Status {
    ValueId found = kNoValue;
    NodeId of = kNoValue;
    if (value) {
      ASSIGN_OR_RETURN(found, graph.Find(name));
    }
    if (node || !value) {
      ASSIGN_OR_RETURN(of, graph.FindNode(name));
    }
    if (value) *value = found;
    if (node) *node = of;
    return absl::OkStatus();
  });
}
