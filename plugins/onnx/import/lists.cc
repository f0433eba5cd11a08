// lists.cc: sequences and optionals among the model's inputs and outputs. The option "length.NAME" says how
// many elements an input has; its elements become the parameters NAME_0, NAME_1 ... Results have such names,
// too.
#include <algorithm>

#include "plugins/onnx/import/forms.h"
#include "plugins/onnx/import/importer.h"
#include "plugins/onnx/import/number.h"
#include "plugins/onnx/import/text.h"

namespace onnx_import {
namespace {

constexpr int64_t kAbsent = -1;
constexpr Text kOption = "length.";

const char* kind_of(const ValueInfo& info) {
  if (!info.is_optional) return "a sequence";
  return info.is_sequence ? "an optional sequence" : "an optional";
}

std::string expected_of(const ValueInfo& info) {
  if (!info.is_sequence) return "1 or none";
  return cat("a number from 0 to ", kMostElements, info.is_optional ? ", or none" : "");
}

// kAbsent: there is no element. An optional tensor has 1 element or 0.
int64_t length_of(const ValueInfo& info, Text text) {
  if (info.is_optional && text == "none") return kAbsent;
  const int64_t most = info.is_sequence ? kMostElements : 1;
  const auto n = number_in<int64_t>(text);
  if (!n || *n < 0 || *n > most)
    refuse(KEEL_INVALID, cat("the length of '", info.name, "', ", kind_of(info), ": got '", text,
                             "'; expected ", expected_of(info)));
  return *n == 0 && !info.is_sequence ? kAbsent : *n;
}

}  // namespace

// The value of "length.NAME"; null: not given.
const char* Importer::given_length(Text name) const {
  for (const keel_kv& option : options_)
    if (const Text key = option.key;
        key.substr(0, kOption.size()) == kOption && key.substr(kOption.size()) == name)
      return option.value;
  return nullptr;
}

void Importer::check_lengths(const std::vector<std::string>& names) const {
  for (const keel_kv& option : options_) {
    const Text key = option.key;
    if (key.substr(0, kOption.size()) != kOption) continue;
    const std::string name(key.substr(kOption.size()));
    if (std::find(names.begin(), names.end(), name) == names.end())
      refuse(KEEL_NOT_FOUND,
             cat("the model has no sequence or optional '", name, "'; it has ", listed(names)));
  }
}

// Puts the elements of sequences in their place among the inputs, before sizes get names.
void Importer::expand_inputs() {
  std::vector<ValueInfo> inputs;
  std::vector<std::string> names;
  std::string without;
  for (const ValueInfo& info : model_.graph.inputs) {
    if (!info.is_tensor || !(info.is_sequence || info.is_optional)) {
      inputs.push_back(info);
      continue;
    }
    names.emplace_back(info.name);
    if (const char* text = given_length(info.name))
      expand_input(info, length_of(info, text), inputs);
    else
      without += cat(without.empty() ? "" : "; ", "'", info.name, "', ", kind_of(info), ", with --length ",
                     info.name, info.is_optional && !info.is_sequence ? "=1 or none" : "=3");
  }
  check_lengths(names);
  if (!without.empty())
    refuse(KEEL_PRECONDITION,
           cat("the import needs the length of ", without, " (import option length.NAME)"));
  model_.graph.inputs = std::move(inputs);
}

void Importer::expand_input(const ValueInfo& info, int64_t length, std::vector<ValueInfo>& inputs) {
  ListInput list = {info.name, {}, length == kAbsent, info.is_sequence, info.type};
  for (int64_t k = 0; k < length; k++) {
    ValueInfo element = info;
    element.is_sequence = element.is_optional = false;
    if (info.is_sequence) {
      element.name = texts_.emplace_back(cat(info.name, "_", k));
      for (Dim& d : element.dims) d.symbol = {};  // elements differ in size
    }
    list.elements.push_back(element.name);
    inputs.push_back(std::move(element));
  }
  lists_.push_back(std::move(list));
}

// An element of a sequence must not take the name of something else.
void Importer::check_elements() const {
  std::map<Text, int> counts;
  for (const auto& input : model_.graph.inputs) counts[input.name]++;
  for (const auto& tensor : model_.graph.initializers) counts[tensor.name] += 2;
  for (const ListInput& list : lists_)
    for (Text name : list.elements)
      if (counts[name] > 1)
        refuse(KEEL_INVALID,
               cat("'", name, "', an element of the input '", list.name, "', has another input's name"));
}

// Makes lists of the parameters; the model knows only the names of the lists.
void Importer::join_inputs(Scope& scope) {
  std::string lines;
  for (const ListInput& list : lists_) {
    std::vector<ValueP> elements;
    for (Text name : list.elements) elements.push_back(scope.values.at(name));
    for (Text name : list.elements) scope.values.erase(name);
    ValueP value = list.absent ? absent_value()
                   : list.is_sequence
                       ? list_value(elements, elements_dtype(list.type, cat("input '", list.name, "'")))
                       : elements[0];
    value->name = list.name;
    scope.values[list.name] = value;
    note_list(lines, list.name, *value);
  }
  if (!lines.empty()) edit_.metadata("onnx.sequence_inputs", lines);
}

// A line NAME <tab> LENGTH for readers of the module; nothing of tensors.
void Importer::note_list(std::string& lines, Text name, const Value& v) {
  if (v.absent)
    lines += cat(name, "\tnone\n");
  else if (v.list)
    lines += cat(name, "\t", v.list->elements.size(), "\n");
}

void Importer::add_result(Text name, const ValueP& value) {
  const auto add = [&](const std::string& full, Value& tensor) {
    if (!result_names_.insert(full).second)
      refuse(KEEL_INVALID, cat("two results of the model would have the name '", full, "'"));
    if (tensor.table) string_outputs_ += cat(full, "\n");
    edit_.result(full, tensor.table ? bytes_of(edit_, tensor) : edit_.id(tensor));
  };
  if (value->absent) return;
  if (!value->list) return add(std::string(name), *value);
  int64_t k = 0;
  for (const ValueP& element : value->list->elements) add(cat(name, "_", k++), *element);
}

}  // namespace onnx_import
