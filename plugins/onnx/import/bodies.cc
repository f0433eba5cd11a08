// bodies.cc: a graph of the model as a graph of the module, the body of a branch or loop.
//
// A body sees only its parameters, so the values of the enclosing graphs that it reads are captured: data
// become operands, and constants and known sizes are copied. Sequences are captured by their elements.
#include <algorithm>

#include "plugins/onnx/import/forms.h"
#include "plugins/onnx/import/importer.h"
#include "plugins/onnx/import/text.h"

namespace onnx_import {

void free_names(const Graph& g, std::set<Text> defined, std::vector<Text>& out) {
  const auto read = [&](Text name) {
    if (!name.empty() && !defined.count(name) && std::find(out.begin(), out.end(), name) == out.end())
      out.push_back(name);
  };
  for (const auto& input : g.inputs) defined.insert(input.name);
  for (const auto& tensor : g.initializers) defined.insert(tensor.name);
  for (const auto& node : g.nodes) {
    for (Text name : node.inputs) read(name);
    for (const auto& a : node.attributes)
      if (a.graph) free_names(*a.graph, defined, out);
    defined.insert(node.outputs.begin(), node.outputs.end());
  }
  for (const auto& output : g.outputs) read(output.name);
}

namespace {

bool is_known(const ValueP& v) { return v->sizes || v->data || v->tensor; }

ValueP copied(const ValueP& v) {
  return rebuilt(v, [](const ValueP& tensor) {
    auto copy = std::make_shared<Value>(*tensor);
    copy->id = copy->bytes = KEEL_NO_VALUE;
    return copy;
  });
}

}  // namespace

const Graph& graph_of(const Call& call, Text attribute) {
  const Attribute* a = call.attribute(attribute);
  if (!a || !a->graph) call.invalid(cat("attribute ", attribute, " is missing"));
  return *a->graph;
}

bool known_bool(Edit& e, Value& v, bool* value) {
  const Sizes* s = e.sizes(v);
  if (!s || s->v.size() != 1 || KEEL_DIM_IS_HANDLE(s->v[0])) return false;
  *value = s->v[0] != 0;
  return true;
}

Ids Importer::Captured::ids(Edit& e) const {
  Ids list;
  for (const auto& [name, value] : values)
    each_tensor(value, [&](const ValueP& tensor) {
      if (!is_known(tensor)) list.push_back(e.id(*tensor));
    });
  return list;
}

// False: a captured value needs a parameter's value.
bool Importer::capture(const std::vector<const Graph*>& graphs, const Scope& scope, Captured* out) const {
  std::vector<Text> names;
  for (const Graph* g : graphs) free_names(*g, {}, names);
  for (Text name : names) {
    const ValueP* found = scope.find(name);
    if (!found || !*found) continue;  // reported by the node that reads it
    if ((*found)->missing) return false;
    bool known = true;
    each_tensor(*found, [&](const ValueP& tensor) { known = known && is_known(tensor); });
    if (known)
      out->constants.emplace_back(name, copied(*found));
    else
      out->values.emplace_back(name, *found);
  }
  return true;
}

Scope Importer::within(const Call& call, const Scope& scope) const {
  Scope inner;
  inner.edit = scope.edit;
  inner.parent = &scope;
  inner.opset = scope.opset;
  inner.depth = scope.depth + 1;
  inner.prefix = cat(call.name, "/");
  inner.attributes = scope.attributes;
  return inner;
}

namespace {

void add_initializers(const Graph& g, Scope& scope) {
  if (g.has_sparse)
    refuse(KEEL_UNIMPLEMENTED, cat("graph '", g.name, "' has sparse initializers, which are not supported"));
  for (const auto& tensor : g.initializers) {
    scope.values[tensor.name] = tensor_value(tensor, scope.show(tensor.name));
  }
}

std::vector<ValueP> results_of(const Graph& g, const Scope& scope, const Call& call) {
  std::vector<ValueP> list;
  for (const auto& output : g.outputs) {
    const ValueP* value = scope.find(output.name);
    if (!value || !*value) call.invalid(cat("no node of its graph produces '", output.name, "'"));
    list.push_back(*value);
  }
  return list;
}

}  // namespace

std::vector<ValueP> Importer::inline_graph(const Graph& g, const std::vector<ValueP>& inputs, Call& call,
                                           const Scope& scope, const std::string& part) {
  if (g.inputs.size() != inputs.size())
    call.invalid(cat("its graph '", g.name, "' has ", g.inputs.size(), " inputs; expected ", inputs.size()));
  Scope inner = within(call, scope);
  inner.prefix += part;
  refuse_unsupported(g.nodes, scope.opset);
  add_initializers(g, inner);
  for (size_t i = 0; i < inputs.size(); i++) inner.values[g.inputs[i].name] = inputs[i];
  convert(g.nodes, inner);
  return results_of(g, inner, call);
}

std::unique_ptr<Importer::Body> Importer::body_of(const Graph& g, Call& call, const Scope& scope,
                                                  const Captured& captured,
                                                  const std::vector<Parameter>& first,
                                                  const std::vector<Parameter>& last) {
  int64_t number = 0;
  auto body = std::unique_ptr<Body>(new Body{scope.edit->new_graph(&number), number, {}, {}, false, {}});
  Scope inner = within(call, scope);
  inner.edit = &body->edit;
  inner.parent = nullptr;
  for (const auto& [name, value] : captured.constants) inner.values[name] = copied(value);
  const auto add = [&](Text name, keel_dt dtype, const Dims& dims) {
    auto value = std::make_shared<Value>();
    value->name = inner.show(name);
    value->id = body->edit.param(cat("p", body->params.size()), dtype, dims);
    body->params.push_back(value->id);
    return value;
  };
  const auto within_body = [&](Text name, const ValueP& outer) {
    if (is_known(outer)) return copied(outer);
    const ValueP value = add(name, scope.edit->dtype(*outer), scope.edit->dims(*outer));
    value->needs = outer->needs, value->nonneg = outer->nonneg;
    return value;
  };
  const auto add_parameter = [&](const Parameter& p) {
    ValueP value = add(p.name, p.dtype, p.dims);
    if (p.strings) value = strings_value(body->edit, value->id);
    value->name = inner.show(p.name);
    inner.values[p.name] = value;
  };
  for (const Parameter& p : first) add_parameter(p);
  for (const auto& captive : captured.values)
    inner.values[captive.first] =
        rebuilt(captive.second, [&](const ValueP& outer) { return within_body(captive.first, outer); });
  for (const Parameter& p : last) add_parameter(p);
  refuse_unsupported(g.nodes, scope.opset);
  add_initializers(g, inner);
  convert(g.nodes, inner);
  body->results = results_of(g, inner, call);
  for (const ValueP& value : body->results) body->missing = body->missing || value->missing;
  return body;
}

}  // namespace onnx_import
