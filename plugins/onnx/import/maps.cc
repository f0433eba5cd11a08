// maps.cc: maps, which exist in models only as inputs of DictVectorizer and CastMap. Such an input becomes
// the vector of its values, in the order that the operator gives them.
#include "plugins/onnx/import/importer.h"

namespace onnx_import {
namespace {

const Attribute* attribute_of(const Node& node, Text name) {
  for (const auto& a : node.attributes)
    if (a.name == name) return &a;
  return nullptr;
}

// The number of values of a map that this node reads; nothing: a run decides.
Dim size_of(const Node& node) {
  if (node.op == "DictVectorizer") {
    const Attribute *words = attribute_of(node, "string_vocabulary"),
                    *numbers = attribute_of(node, "int64_vocabulary");
    const size_t count = words ? words->strings.size() : numbers ? numbers->ints.size() : 0;
    return {true, static_cast<int64_t>(count), {}};
  }
  const Attribute *form = attribute_of(node, "map_form"), *most = attribute_of(node, "max_map");
  if (!form || form->s != "SPARSE") return {};
  return {true, most ? most->i : 1, {}};
}

bool takes_maps(const Node& node) {
  return node.domain == "ai.onnx.ml" && (node.op == "DictVectorizer" || node.op == "CastMap");
}

}  // namespace

void Importer::expand_map(ValueInfo& input) const {
  const std::string what = cat("input '", input.name, "', a map,");
  std::optional<Dim> size;
  for (const Node& node : model_.graph.nodes) {
    if (std::find(node.inputs.begin(), node.inputs.end(), input.name) == node.inputs.end()) continue;
    if (!takes_maps(node))
      refuse(KEEL_UNIMPLEMENTED, cat(what, " is read by ", node.op, "; expected DictVectorizer or CastMap"));
    const Dim own = size_of(node);
    if (size && (size->known != own.known || size->value != own.value))
      refuse(KEEL_UNIMPLEMENTED, cat(what, " is read with vocabularies of different sizes"));
    size = own;
  }
  if (!size) refuse(KEEL_UNIMPLEMENTED, cat(what, " is read by no node, so its keys are not known"));
  if (input.type == kString)
    refuse(KEEL_UNIMPLEMENTED, cat(what, " has strings as values; expected numbers"));
  input.is_tensor = input.has_shape = true;
  input.dims = {*size};
}

void Importer::expand_maps() {
  for (auto& input : model_.graph.inputs)
    if (input.is_map && !input.is_sequence && !input.is_optional) expand_map(input);
}

}  // namespace onnx_import
