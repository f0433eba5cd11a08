// carried.cc: the values that loops carry, scan and stack. Strings are their bytes there, u8[dims.., width],
// of a width that the body keeps: the first body shows how wide its results are, the second one is as wide.
#include "plugins/onnx/import/forms.h"
#include "plugins/onnx/import/importer.h"
#include "plugins/onnx/import/text.h"

namespace onnx_import {
namespace {

constexpr int kBodies = 3;  // that are tried; results that are still wider grow in each iteration

}  // namespace

Importer::Parameter Importer::parameter(Call& call, Text name, size_t operand) {
  Value& v = call.value(operand);
  if (!v.table) return {name, call.dtype(operand), call.dims(operand)};
  return {name, KEEL_U8, call.e.dims(bytes_of(call.e, v)), true};
}

// The types of the carried operands, under the names that the body has for them.
std::vector<Importer::Parameter> Importer::carried_parameters(Call& call, const Graph& g, size_t from,
                                                              size_t until) {
  std::vector<Parameter> list;
  for (size_t i = from; i < until; i++) list.push_back(parameter(call, g.inputs[i].name, i));
  return list;
}

// Makes bytes of the body's strings, as wide as the parameters; false: these must be wider, and now are.
bool Importer::widen(const Carried& carried, Body& body, std::vector<Parameter>& first) {
  Edit& e = body.edit;
  bool fit = true;
  for (size_t k = 0; k < body.results.size(); k++) {
    if (!body.results[k]->table) continue;
    auto bytes = std::make_shared<Value>();
    bytes->id = bytes_of(e, *body.results[k]);
    body.strings.insert(k);
    body.results[k] = bytes;
    if (k < carried.result || k >= carried.result + carried.n) continue;
    Parameter& p = first[carried.param + k - carried.result];
    if (!p.strings) continue;  // changing() refuses the difference
    const keel_dim width = e.max(e.dims(bytes->id).back(), p.dims.back());
    fit = fit && e.is(width, p.dims.back());
    p.dims.back() = width;
    bytes->id = widened(e, bytes->id, width);
  }
  return fit;
}

// Null: a value that the loop carries has another shape after each iteration, as `why` says.
std::unique_ptr<Importer::Body> Importer::loop_body(const Graph& g, Call& call, const Scope& scope,
                                                    const Captured& captured, std::vector<Parameter>& first,
                                                    const std::vector<Parameter>& last,
                                                    const Carried& carried, std::string* why) {
  for (int k = 0; k < kBodies; k++) {
    auto body = body_of(g, call, scope, captured, first, last);
    if (body->missing) return body;
    expect_tensors(call, *body);
    if (!widen(carried, *body, first)) continue;
    *why = changing(call, g, *body, first, carried);
    if (!why->empty()) return nullptr;
    expect_stackable(call, g, *body, carried.result + carried.n);
    return body;
  }
  *why = "strings that it carries grow in its body";
  return nullptr;
}

Ids Importer::carried_operands(Call& call, size_t from, const std::vector<Parameter>& first,
                               const Carried& carried) {
  Ids list;
  for (size_t i = 0; i < carried.n; i++) {
    const Parameter& p = first[carried.param + i];
    list.push_back(p.strings ? widened(call.e, bytes_of(call.e, call.value(from + i)), p.dims.back())
                             : call.in(from + i));
  }
  return list;
}

void Importer::set_result(Call& call, size_t k, keel_value v, const Body& body, size_t result) {
  if (body.strings.contains(result))
    call.set(k, strings_value(call.e, v));
  else
    call.set(k, v);
}

}  // namespace onnx_import
