// model.cc: see model.h; and the numbers of fields of ONNX's messages.
#include "plugins/onnx/export/model.h"

#include <cmath>
#include <cstring>

namespace onnx_export {
namespace {

// Dtypes that the first opset lacks.
struct Since {
  keel_dt dtype;
  int64_t opset;
};
constexpr Since kSince[] = {
    {KEEL_F8E4M3FN, 19}, {KEEL_F8E4M3FNUZ, 19}, {KEEL_F8E5M2, 19}, {KEEL_F8E5M2FNUZ, 19}, {KEEL_U4, 21},
    {KEEL_I4, 21},       {KEEL_F4E2M1, 23},     {KEEL_F8E8M0, 24}, {KEEL_U2, 25},         {KEEL_I2, 25}};

// Fields of ONNX's messages.
namespace attribute {
enum : uint32_t {
  kName = 1,
  kF = 2,
  kI = 3,
  kS = 4,
  kG = 6,
  kFloats = 7,
  kInts = 8,
  kStrings = 9,
  kType = 20
};
enum : int64_t {
  kOfFloat = 1,
  kOfInt = 2,
  kOfString = 3,
  kOfGraph = 5,
  kOfFloats = 6,
  kOfInts = 7,
  kOfStrings = 8
};
}  // namespace attribute
namespace node {
enum : uint32_t { kInput = 1, kOutput = 2, kName = 3, kOp = 4, kAttribute = 5, kDomain = 7 };
}
namespace graph {
enum : uint32_t { kNode = 1, kName = 2, kInitializer = 5, kInput = 11, kOutput = 12 };
}
namespace model {
enum : uint32_t { kIrVersion = 1, kProducer = 2, kGraph = 7, kOpset = 8 };
}
namespace tensor {
enum : uint32_t { kDims = 1, kType = 2, kName = 8, kRaw = 9, kExternal = 13, kLocation = 14 };
enum : int64_t { kInSecondFile = 1 };
}  // namespace tensor

constexpr size_t kLarge = 1024;  // bytes of a weight that may go to a second file

void add_place(Message& tensor, const std::string& location, uint64_t offset, uint64_t length) {
  auto add = [&](const char* key, const std::string& value) {
    Message entry;
    entry.text(1, key);
    entry.text(2, value);
    tensor.message(tensor::kExternal, std::move(entry));
  };
  add("location", location);
  add("offset", std::to_string(offset));
  add("length", std::to_string(length));
  tensor.integer(tensor::kLocation, tensor::kInSecondFile);
}

// The oldest IR version of an opset's release.
int64_t ir_version(int64_t opset) { return opset >= 25 ? 13 : opset == 24 ? 12 : opset == 23 ? 11 : 10; }

// The bits of a float with `mantissa` bits of mantissa and 15 - mantissa of exponent, halves to even.
uint16_t narrow_float(double number, int mantissa) {
  const int exponent_bits = 15 - mantissa, bias = (1 << (exponent_bits - 1)) - 1;
  const uint32_t sign = std::signbit(number) ? 0x8000 : 0, inf = ((1u << exponent_bits) - 1) << mantissa;
  if (std::isnan(number)) return static_cast<uint16_t>(inf | 1u << (mantissa - 1));
  const double size = std::fabs(number);
  if (size == 0) return static_cast<uint16_t>(sign);
  int exponent = 0;
  std::frexp(size, &exponent);
  exponent = std::max(exponent - 1, 1 - bias);  // of the last place that counts
  const double steps = std::nearbyint(std::ldexp(size, mantissa - exponent));
  if (!(steps < 1e9)) return static_cast<uint16_t>(sign | inf);
  const int64_t bits =
      (int64_t{exponent} + bias - 1) * (int64_t{1} << mantissa) + static_cast<int64_t>(steps);
  return static_cast<uint16_t>(sign | std::min<int64_t>(bits, inf));
}

// The bytes of one element; f16, bf16 and f32 are rounded.
std::string element(keel_dt dtype, double number) {
  auto bytes = [](auto v) { return std::string(reinterpret_cast<const char*>(&v), sizeof v); };
  if (dtype == KEEL_F64) return bytes(number);
  if (dtype == KEEL_F32) return bytes(static_cast<float>(number));
  if (dtype == KEEL_F16) return bytes(narrow_float(number, 10));
  if (dtype == KEEL_BF16) return bytes(narrow_float(number, 7));
  if (dtype == KEEL_BOOL) return bytes(static_cast<uint8_t>(number != 0));
  const uint64_t whole = number < 0 ? static_cast<uint64_t>(static_cast<int64_t>(number))
                         : number >= 18446744073709551615.0 ? ~uint64_t{0}
                                                            : static_cast<uint64_t>(number);
  return bytes(whole).substr(0, static_cast<size_t>(dtype_bits(dtype)) / 8);
}

}  // namespace

int64_t opset_of(keel_dt dtype) {
  for (const Since& each : kSince)
    if (each.dtype == dtype) return each.opset;
  return 1;
}

Message& NodeAttrs::add(const char* name, int64_t type) {
  Message& made = attrs_.emplace_back();
  made.text(attribute::kName, name);
  made.integer(attribute::kType, type);
  return made;
}
NodeAttrs&& NodeAttrs::i(const char* name, int64_t v) && {
  add(name, attribute::kOfInt).integer(attribute::kI, v);
  return std::move(*this);
}
NodeAttrs&& NodeAttrs::f(const char* name, double v) && {
  add(name, attribute::kOfFloat).real(attribute::kF, static_cast<float>(v));
  return std::move(*this);
}
NodeAttrs&& NodeAttrs::s(const char* name, std::string_view v) && {
  add(name, attribute::kOfString).text(attribute::kS, v);
  return std::move(*this);
}
NodeAttrs&& NodeAttrs::ints(const char* name, const Ints& v) && {
  add(name, attribute::kOfInts).integers(attribute::kInts, v);
  return std::move(*this);
}
NodeAttrs&& NodeAttrs::floats(const char* name, const std::vector<float>& v) && {
  add(name, attribute::kOfFloats)
      .text(attribute::kFloats, {reinterpret_cast<const char*>(v.data()), v.size() * sizeof(float)});
  return std::move(*this);
}
NodeAttrs&& NodeAttrs::strings(const char* name, const Names& v) && {
  Message& made = add(name, attribute::kOfStrings);
  for (const std::string& each : v) made.text(attribute::kStrings, each);
  return std::move(*this);
}
NodeAttrs&& NodeAttrs::graph(const char* name, Message&& v) && {
  add(name, attribute::kOfGraph).message(attribute::kG, std::move(v));
  return std::move(*this);
}

Message value_info(const std::string& name, keel_dt dtype, const Names& dims) {
  Message shape, tensor, type, info;
  for (const std::string& dim : dims) {
    Message each;
    if (!dim.empty() && dim[0] >= '0' && dim[0] <= '9')
      each.integer(1, std::stoll(dim));
    else if (!dim.empty())
      each.text(2, dim);
    shape.message(1, std::move(each));
  }
  tensor.integer(1, element_type(dtype));
  tensor.message(2, std::move(shape));
  type.message(1, std::move(tensor));
  info.text(1, name);
  info.message(2, std::move(type));
  return info;
}

void Graph::add(const char* op, const Names& in, const Names& out, NodeAttrs attrs) {
  Message made;
  for (const std::string& name : in) made.text(node::kInput, name);
  for (const std::string& name : out) made.text(node::kOutput, name);
  made.text(node::kName, out[0]);
  const std::string_view name = op;
  const size_t dot = name.rfind('.');
  made.text(node::kOp, dot == name.npos ? name : name.substr(dot + 1));
  if (dot != name.npos) made.text(node::kDomain, name.substr(0, dot));
  for (Message& attr : attrs.take()) made.message(node::kAttribute, std::move(attr));
  nodes.push_back(std::move(made));
}

Message Graph::take(const std::string& name, std::vector<Message> initializers) {
  Message made;
  for (Message& each : nodes) made.message(graph::kNode, std::move(each));
  made.text(graph::kName, name);
  for (Message& each : initializers) made.message(graph::kInitializer, std::move(each));
  for (Message& each : inputs) made.message(graph::kInput, std::move(each));
  for (Message& each : outputs) made.message(graph::kOutput, std::move(each));
  return made;
}

std::string Model::unique(const std::string& wanted) {
  std::string name = wanted;
  for (size_t& k = next_[wanted]; !names_.insert(name).second;) name = cat(wanted, "_", ++k);
  return name;
}

std::string Model::tensor(const std::string& name, keel_dt dtype, const Ints& dims, std::string_view bytes,
                          bool borrow) {
  need(dtype);
  Message made;
  made.integers(tensor::kDims, dims);
  made.integer(tensor::kType, element_type(dtype));
  std::string chosen = unique(name);
  made.text(tensor::kName, chosen);
  borrow = borrow && bytes.size() >= kLarge;
  if (!borrow) made.text(tensor::kRaw, bytes);
  initializers_.push_back({std::move(made), borrow ? bytes : ""});
  return chosen;
}

std::string Model::shared(keel_dt dtype, const Ints& dims, const std::string& bytes) {
  std::string& known = shared_[{cat(dtype, " ", dims.size()), bytes}];
  if (known.empty()) known = tensor("const", dtype, dims, bytes, false);
  return known;
}

std::string Model::scalar(keel_dt dtype, double number) { return shared(dtype, {}, element(dtype, number)); }

std::string Model::ints(const Ints& v) {
  return shared(KEEL_I64, {static_cast<int64_t>(v.size())},
                {reinterpret_cast<const char*>(v.data()), v.size() * sizeof(int64_t)});
}

// Without the outermost fields, which are few.
uint64_t Model::size_of(const Graph& main) const {
  constexpr uint64_t kHeader = 6;  // tag and length
  uint64_t size = 0;
  for (const auto* list : {&main.nodes, &main.inputs, &main.outputs})
    for (const Message& each : *list) size += kHeader + each.size();
  for (const Initializer& each : initializers_)
    size += 2 * kHeader + each.message.size() + each.borrowed.size();
  return size;
}

Message Model::take(Graph& main, const std::string& name, uint64_t most, ExternalData& data) {
  const bool two_files = size_of(main) + 4096 > most;
  std::vector<Message> initializers;
  for (Initializer& each : initializers_) {
    Message& made = initializers.emplace_back(std::move(each.message));
    const std::string_view bytes = each.borrowed;
    if (!bytes.empty() && two_files)
      add_place(made, data.location(), data.add(bytes), bytes.size());
    else if (!bytes.empty())
      made.borrow(tensor::kRaw, bytes);
  }
  Message made;
  made.integer(model::kIrVersion, ir_version(opset_));
  made.text(model::kProducer, "keel");
  domains_[""] = opset_;
  for (const auto& [domain, since] : domains_) {
    Message opset;
    opset.text(1, domain);
    opset.integer(2, since);
    made.message(model::kOpset, std::move(opset));
  }
  made.message(model::kGraph, main.take(name, std::move(initializers)));
  return made;
}

void Model::check_refused() const {
  if (refused_.empty()) return;
  std::string list;
  for (const auto& [node, count] : refused_)
    list += cat(list.empty() ? "" : "; ", node.first, count > 1 ? cat(" (", count, ")") : "",
                node.second.empty() ? "" : ": ", node.second);
  onnx_import::refuse(KEEL_UNIMPLEMENTED, cat("cannot be written as ONNX: ", list));
}

}  // namespace onnx_export
