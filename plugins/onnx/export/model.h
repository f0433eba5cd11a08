// model.h: the ONNX model under construction: dtypes, attributes, graphs, names and initializers.
//
// All initializers are in the main graph, which the graphs of If, Loop and Scan see as a whole, and all names
// of the model differ.
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "plugins/onnx/export/external.h"
#include "plugins/onnx/export/message.h"
#include "plugins/onnx/import/failure.h"
#include "plugins/onnx/model/tensor.h"

namespace onnx_export {

using keel::dtype_bits;
using onnx_import::cat;
using onnx_import::check;
using onnx_import::element_type;
using onnx_import::Failure;
using onnx_import::is_float;
using onnx_import::is_unsigned;
using Ints = std::vector<int64_t>;
using Dims = std::vector<keel_dim>;
using Names = std::vector<std::string>;

constexpr int64_t kBaseOpset = 22;
// The first opset that has the dtype.
int64_t opset_of(keel_dt dtype);
inline int64_t count_of(const keel_tensor& t) {  // elements
  return std::accumulate(t.shape, t.shape + t.ndim, int64_t{1}, std::multiplies<>());
}
inline keel_dt dtype_of(const keel_tensor& t) { return keel_dt_of(&t); }

// The attributes of a node.
class NodeAttrs {
 public:
  NodeAttrs&& i(const char* name, int64_t v) &&;
  NodeAttrs&& f(const char* name, double v) &&;
  NodeAttrs&& s(const char* name, std::string_view v) &&;
  NodeAttrs&& ints(const char* name, const Ints& v) &&;
  NodeAttrs&& floats(const char* name, const std::vector<float>& v) &&;
  NodeAttrs&& strings(const char* name, const Names& v) &&;
  NodeAttrs&& graph(const char* name, Message&& v) &&;
  std::vector<Message> take() { return std::move(attrs_); }

 private:
  Message& add(const char* name, int64_t type);
  std::vector<Message> attrs_;
};

// The type of a value, for inputs and outputs of graphs. dims: numbers, or names of symbols; "": unknown.
Message value_info(const std::string& name, keel_dt dtype, const Names& dims);

struct Graph {
  std::vector<Message> nodes, inputs, outputs;
  // op: after its domain and a dot, unless that is ONNX's own.
  void add(const char* op, const Names& in, const Names& out, NodeAttrs attrs = {});
  Message take(const std::string& name, std::vector<Message> initializers = {});
};

class Model {
 public:
  std::string unique(const std::string& wanted);
  void need(int64_t opset) { opset_ = std::max(opset_, opset); }
  void need(keel_dt dtype) { need(opset_of(dtype)); }
  void need_domain(const std::string& domain, int64_t opset) { domains_[domain] = opset; }
  // The name of an initializer with these elements. borrow: they outlive the model.
  std::string tensor(const std::string& name, keel_dt dtype, const Ints& dims, std::string_view bytes,
                     bool borrow);
  // Small ones; equal ones are shared.
  std::string scalar(keel_dt dtype, double number);
  std::string ints(const Ints& v);
  // Large weights are added to `data` if the model has more bytes than `most`.
  Message take(Graph& main, const std::string& name, uint64_t most, ExternalData& data);

  // A node that has no form in ONNX; the file is not written then.
  void refuse(const std::string& op, const std::string& why) { refused_[{op, why}]++; }
  void check_refused() const;  // throws Failure with all of them

 private:
  struct Initializer {
    Message message;
    std::string_view borrowed;  // its bytes, unless the message has them
  };
  std::string shared(keel_dt dtype, const Ints& dims, const std::string& bytes);
  uint64_t size_of(const Graph& main) const;

  int64_t opset_ = kBaseOpset;
  std::map<std::string, int64_t> domains_;  // others that the model uses, and their opsets
  std::set<std::string> names_;
  std::map<std::string, size_t> next_;  // number to try for a name that is taken
  std::vector<Initializer> initializers_;
  std::map<std::pair<std::string, std::string>, int> refused_;
  std::map<std::pair<std::string, std::string>, std::string> shared_;
};

}  // namespace onnx_export
