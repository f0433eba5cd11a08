// importer.cc: an import as a whole: parameters, symbols, results, metadata, and errors about the model.
// Nodes are converted in convert.cc, checked in survey.cc.
#include "plugins/onnx/import/importer.h"

#include "plugins/onnx/import/text.h"

namespace onnx_import {
namespace {

std::string sanitised(Text name) {
  std::string s;
  for (char c : name) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    s += good ? c : '_';
  }
  if (s.empty() || (s[0] >= '0' && s[0] <= '9')) s.insert(0, "d");
  return s;
}

std::string unique(std::string name, std::set<std::string>& taken) {
  while (!taken.insert(name).second) name += '_';
  return name;
}

void refuse_opsets(const std::vector<OpsetImport>& imports) {
  for (const auto& import : imports)
    if (import.domain.empty() && (import.version < 1 || import.version > 28))
      refuse(KEEL_UNIMPLEMENTED, cat("the model has ONNX opset ", import.version,
                                     "; supported are 1 to 28. "
                                     "Convert it, for example with onnx.version_converter"));
}

}  // namespace

int opset_version(const std::vector<OpsetImport>& imports) {
  for (const auto& import : imports)
    if (import.domain.empty())
      return static_cast<int>(std::min<int64_t>(std::max<int64_t>(import.version, 1), 1 << 20));
  return 0;
}

void Importer::run() {
  model_ = parse_model({reinterpret_cast<const char*>(source_->data), source_->size});
  cut_model();
  Scope scope;
  scope.edit = &edit_;
  refuse_opsets(model_.opsets);
  scope.opset = opset_version(model_.opsets);
  if (model_.graph.has_sparse)
    refuse(KEEL_UNIMPLEMENTED, "the model has sparse initializers, which are not supported");
  refuse_unsupported(model_.graph.nodes, scope.opset);
  add_metadata();
  expand_maps();
  expand_inputs();
  check_elements();
  widen_strings();
  name_symbols();
  fix_sizes();
  add_parameters(scope);
  convert(model_.graph.nodes, scope);
  demand(needs_);
  if (!node_names_.empty()) edit_.metadata("onnx.nodes", node_names_);
  add_results(scope);
}

void Importer::demand(const Names& needs) const {
  if (needs.empty()) return;
  std::string list;
  for (const auto& name : needs) list += cat(list.empty() ? "'" : ", '", name, "'", type_text(name));
  refuse(KEEL_PRECONDITION, cat("the import needs the value of parameter(s) ", list,
                                ": pass it with fixed (command line: -i ", *needs.begin(), "=...)"));
}

keel_dt Importer::parameter_dtype(const ValueInfo& info) {
  return info.type == kString ? keel_dt{KEEL_U8} : dtype_of(info.type, cat("parameter '", info.name, "'"));
}

// ": i64[2]" for an input with a numeric shape and a type; else "".
std::string Importer::type_text(Text name) const {
  for (const auto& input : model_.graph.inputs) {
    if (input.name != name || !input.is_tensor || !input.has_shape) continue;
    std::string dims;
    for (const Dim& d : input.dims) {
      if (!d.known) return "";
      dims += cat(dims.empty() ? "" : ",", d.value);
    }
    return cat(": ", dtype_name(parameter_dtype(input)), "[", dims, "]");
  }
  return "";
}

void Importer::add_metadata() {
  edit_.metadata("onnx.ir_version", std::to_string(model_.ir_version));
  for (const auto& import : model_.opsets)
    edit_.metadata(import.domain.empty() ? "onnx.opset" : cat("onnx.opset.", import.domain),
                   std::to_string(import.version));
  const std::pair<const char*, Text> texts[] = {{"onnx.producer", model_.producer},
                                                {"onnx.producer_version", model_.producer_version},
                                                {"onnx.domain", model_.domain},
                                                {"onnx.graph", model_.graph.name}};
  for (const auto& [key, text] : texts)
    if (!text.empty()) edit_.metadata(key, std::string(text));
  for (const auto& [key, text] : model_.metadata) edit_.metadata(std::string(key), std::string(text));
}

// Parameters of strings have a dim of bytes more than the model's inputs. The key of its symbol is no other
// dim's name: models do not have one with this byte.
void Importer::widen_strings() {
  for (auto& input : model_.graph.inputs) {
    if (input.type != kString || !input.is_tensor || !input.has_shape || !fed_input(input.name)) continue;
    input.dims.push_back({false, 0, texts_.emplace_back(cat(input.name, "\x1f", "bytes"))});
  }
}

// Named dims first, so that generated names cannot clash with them.
void Importer::name_symbols() {
  for (const auto& input : model_.graph.inputs)
    for (const auto& dim : input.dims)
      if (!dim.symbol.empty() && !symbols_.count(dim.symbol))
        symbols_[dim.symbol] = unique(sanitised(dim.symbol), symbol_names_);
  for (const auto& input : model_.graph.inputs)
    for (size_t k = 0; k < input.dims.size(); k++) {
      const Dim& dim = input.dims[k];
      const bool named = (dim.known && dim.value >= 0) || !dim.symbol.empty();
      unnamed_[input.name].push_back(named ? "" : unique(cat(sanitised(input.name), "_", k), symbol_names_));
    }
}

// The symbol's name of a dim; "" if it is a number.
std::string Importer::symbol_of(const ValueInfo& info, size_t axis) const {
  const Dim& dim = info.dims[axis];
  if (dim.known && dim.value >= 0) return "";
  return dim.symbol.empty() ? unnamed_.at(info.name)[axis] : symbols_.at(dim.symbol);
}

Dims Importer::parameter_dims(const ValueInfo& info) {
  Dims dims;
  for (size_t k = 0; k < info.dims.size(); k++) {
    const std::string symbol = symbol_of(info, k);
    const auto fixed = fixed_sizes_.find(symbol);
    if (symbol.empty())
      dims.push_back(info.dims[k].value);
    else
      dims.push_back(fixed == fixed_sizes_.end() ? edit_.symbol(symbol) : fixed->second);
  }
  return dims;
}

ValueP Importer::fixed(Text name) {
  for (uint64_t k = 0; k < source_->n_fixed; k++) {
    if (name != source_->fixed_names[k]) continue;
    const keel_tensor& t = source_->fixed_values[k];
    auto data = std::make_shared<Data>();
    data->dtype = keel_dt_of(&t);
    data->dims.assign(t.shape, t.shape + t.ndim);
    data->size = keel_bytes(data->dtype, checked_count(data->dims, cat("the fixed value of '", name, "'")));
    int64_t stride = 1;
    for (int32_t d = t.ndim - 1; t.strides && d >= 0; stride *= t.shape[d--])
      if (t.shape[d] > 1 && t.strides[d] != stride)
        refuse(KEEL_INVALID, cat("the fixed value of '", name, "' is not contiguous"));
    const auto* from = static_cast<const uint8_t*>(keel_ptr(&t));
    if (data->size) data->own.assign(from, from + data->size);
    data->bytes = data->own.data();
    auto value = std::make_shared<Value>();
    value->name = name;
    value->data = std::move(data);
    return value;
  }
  return nullptr;
}

void Importer::add_parameter(const ValueInfo& info, Scope& scope) {
  const std::string what = cat("parameter '", info.name, "'");
  if (ValueP constant = fixed(info.name)) {
    if (info.type == kString) constant = strings_value(*constant->data, what);
    constant->name = info.name;
    scope.values[info.name] = constant;
    return;
  }
  if (!info.is_tensor)
    refuse(KEEL_UNIMPLEMENTED, cat(what, " is not a tensor, a map, nor a sequence or optional of tensors"));
  if (!info.has_shape) refuse(KEEL_UNIMPLEMENTED, cat(what, " has no shape; Keel needs at least its rank"));
  if (info.dims.size() > KEEL_MAX_RANK)
    refuse(KEEL_UNIMPLEMENTED,
           cat(what, " has ", info.dims.size(), " dims; Keel has at most ", KEEL_MAX_RANK));
  auto value = std::make_shared<Value>();
  value->name = info.name;
  // A mask is no size.
  if (info.dims.empty() || parameter_dtype(info) != KEEL_BOOL) value->needs = {value->name};
  value->id = edit_.param(value->name, parameter_dtype(info), parameter_dims(info));
  if (info.type == kString) value = as_strings(*value);
  scope.values[info.name] = value;
}

// The strings of a parameter of bytes.
ValueP Importer::as_strings(const Value& bytes) {
  ValueP value = strings_value(edit_, bytes.id);
  value->name = bytes.name;
  value->needs = value->table->needs = bytes.needs;
  string_inputs_ += cat(bytes.name, "\n");
  return value;
}

void Importer::add_parameters(Scope& scope) {
  for (const auto& tensor : model_.graph.initializers)
    scope.values[tensor.name] = tensor_value(tensor, std::string(tensor.name));
  for (const auto& input : model_.graph.inputs)  // in IR 3 inputs include initializers
    if (!scope.values.count(input.name)) add_parameter(input, scope);
  join_inputs(scope);
}

void Importer::add_results(const Scope& scope) {
  std::string lines;
  for (const auto& output : model_.graph.outputs) {
    const ValueP* value = scope.find(output.name);
    if (!value || !*value) refuse(KEEL_INVALID, cat("no node produces the result '", output.name, "'"));
    add_result(output.name, *value);
    note_list(lines, output.name, **value);
  }
  if (!lines.empty()) edit_.metadata("onnx.sequence_outputs", lines);
  if (!string_inputs_.empty()) edit_.metadata("onnx.string_inputs", string_inputs_);
  if (!string_outputs_.empty()) edit_.metadata("onnx.string_outputs", string_outputs_);
}

}  // namespace onnx_import
