// sizes.cc: sizes fixed by the caller: the options "dim.NAME" and "shape.INPUT", which replace the model's
// sizes of inputs.
#include "plugins/onnx/import/importer.h"
#include "plugins/onnx/import/number.h"

namespace onnx_import {
namespace {

int64_t number(Text text, const std::string& what) {
  const auto n = number_in<int64_t>(text);
  if (!n || *n < 0 || KEEL_DIM_IS_HANDLE(*n))
    refuse(KEEL_INVALID, cat(what, ": got '", text, "'; expected a size"));
  return *n;
}

}  // namespace

void Importer::learn(const std::string& symbol, int64_t size, const std::string& from) {
  const auto [at, added] = fixed_sizes_.emplace(symbol, size);
  if (!added && at->second != size)
    refuse(KEEL_INVALID,
           cat(from, ": the size '", symbol, "' would be ", size, ", but it is fixed to ", at->second));
}

// By the model's name of the dim or by Keel's.
void Importer::fix_dim(Text name, Text size) {
  const std::string from = cat("dim '", name, "'");
  std::set<std::string> names = symbol_names_;
  for (const auto& [own, symbol] : symbols_) {
    names.emplace(own);
    if (own == name) return learn(symbol, number(size, from), from);
  }
  if (!symbol_names_.count(std::string(name)))
    refuse(KEEL_NOT_FOUND, cat("the model has no dim '", name, "'; it has ", listed(names)));
  learn(std::string(name), number(size, from), from);
}

// An input that is not only a weight, which old models list, too; null: there is none of this name.
ValueInfo* Importer::fed_input(Text name) {
  for (const auto& tensor : model_.graph.initializers)
    if (tensor.name == name) return nullptr;
  for (auto& input : model_.graph.inputs)
    if (input.name == name) return &input;
  return nullptr;
}

std::set<std::string> Importer::fed_names() {
  std::set<std::string> names;
  for (const auto& input : model_.graph.inputs)
    if (fed_input(input.name)) names.emplace(input.name);
  return names;
}

std::vector<Text> words_of(Text list) {
  std::vector<Text> words;
  for (size_t at = 0; at <= list.size() && !list.empty();) {
    const size_t comma = std::min(list.find(',', at), list.size());
    words.push_back(list.substr(at, comma - at));
    at = comma + 1;
  }
  return words;
}

void Importer::fix_shape(Text input, Text sizes) {
  for (const ListInput& list : lists_)
    if (list.name == input && list.is_sequence) {
      for (Text element : list.elements) fix_shape(element, sizes);
      return;
    }
  const std::string from = cat("the shape of input '", input, "'");
  ValueInfo* info = fed_input(input);
  if (!info)
    refuse(KEEL_NOT_FOUND, cat("the model has no input '", input, "'; it has ", listed(fed_names())));
  const std::vector<Text> words = words_of(sizes);
  if (!info->has_shape) {  // the model does not even specify the rank
    info->has_shape = true;
    info->dims.resize(words.size());
    for (size_t k = 0; k < words.size(); k++) {
      std::string symbol = cat(input, "_", k);
      while (!symbol_names_.insert(symbol).second) symbol += '_';
      unnamed_[info->name].push_back(std::move(symbol));
    }
  }
  if (words.size() != info->dims.size())
    refuse(KEEL_INVALID, cat(from, ": got ", words.size(), " sizes; expected ", info->dims.size()));
  for (size_t k = 0; k < words.size(); k++) {
    if (words[k] == "?") continue;
    const int64_t size = number(words[k], from);
    if (const std::string symbol = symbol_of(*info, k); !symbol.empty())
      learn(symbol, size, from);
    else
      info->dims[k].value = size;  // may differ from the size the model was exported with
  }
}

void Importer::fix_sizes() {
  for (const keel_kv& option : options_) {
    const Text key = option.key;
    if (key.substr(0, 4) == "dim.")
      fix_dim(key.substr(4), option.value);
    else if (key.substr(0, 6) == "shape.")
      fix_shape(key.substr(6), option.value);
    else if (key == "list" && option.value == Text("operators"))
      edit_.metadata("onnx.operators", operator_list());
    else if (key.substr(0, 7) != "length." && key != "cut")  // lists.cc, part.cc
      refuse(KEEL_INVALID,
             cat("option '", key, "' is unknown; expected dim.NAME, shape.INPUT, length.INPUT or cut"));
  }
}

}  // namespace onnx_import
