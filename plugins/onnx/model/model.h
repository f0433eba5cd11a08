// model.h: an ONNX model as a view: every string and tensor points into the mapped file.
//
// A Model has a Graph, a Graph has Nodes, a Node has Attributes, and all may hold Tensors. parse_model()
// parses everything at once; tensor data is decoded later (tensor.h). The field numbers in model.cc are those
// of onnx.proto.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace onnx_import {

using Text = std::string_view;

enum ElementType : int64_t {
  kFloat = 1,
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kInt32,
  kInt64,
  kString,
  kBool,
  kFloat16,
  kDouble,
  kUint32,
  kUint64,
  kBfloat16 = 16
};

struct Tensor {
  Text name, raw, message;  // message: the whole message, for the typed fields
  bool has_raw = false, is_external = false;
  int64_t type = 0;
  std::vector<int64_t> dims;
  std::vector<std::pair<Text, Text>> external;
};

struct Graph;
enum AttributeType : int64_t {
  kAttrFloat = 1,
  kAttrInt,
  kAttrString,
  kAttrTensor,
  kAttrGraph,
  kAttrFloats,
  kAttrInts,
  kAttrStrings
};
struct Attribute {
  Text name, reference, s;  // reference: the enclosing function's attribute that this one refers to
  int64_t type = 0, i = 0;
  float f = 0;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<Text> strings;
  std::shared_ptr<Tensor> tensor;
  std::shared_ptr<Graph> graph;
};

struct Node {
  Text name, op, domain, overload;
  std::vector<Text> inputs, outputs;
  std::vector<Attribute> attributes;
};

struct Dim {
  bool known = false;
  int64_t value = 0;
  Text symbol;
};
struct ValueInfo {
  Text name;
  bool is_tensor = false, has_shape = false;
  int64_t type = 0;
  std::vector<Dim> dims;
  bool is_sequence = false, is_optional = false;  // of what the fields above say
  bool is_map = false;                            // to values of `type`; then it is no tensor
};

struct Graph {
  Text name;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<ValueInfo> inputs, outputs, values;  // values: of which the model gives the types
  bool has_sparse = false;
};

struct OpsetImport {
  Text domain;
  int64_t version = 0;
};
struct Function {
  Text name, domain, overload;
  std::vector<Text> inputs, outputs, attributes;
  std::vector<Attribute> defaults;
  std::vector<Node> nodes;
  std::vector<OpsetImport> opsets;
};

struct Model {
  int64_t ir_version = 0, version = 0;
  Text producer, producer_version, domain;
  bool has_graph = false;
  Graph graph;
  std::vector<OpsetImport> opsets;
  std::vector<std::pair<Text, Text>> metadata;
  std::vector<Function> functions;
};

Model parse_model(Text file);

}  // namespace onnx_import
