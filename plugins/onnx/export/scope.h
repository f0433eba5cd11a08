// scope.h: one Keel graph on its way into an ONNX graph: names of its values, and sizes as values.
//
// A Scope inside another one is the body of If, Loop or Scan: it sees the names and sizes of the outer one.
// Two scopes may write into one ONNX graph, as the test and the body of a loop do.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "plugins/onnx/export/model.h"

namespace onnx_export {

// Thrown if ONNX has no form of a node; the node is counted, and the survey goes on.
struct Refused {
  std::string why;
};

class Scope {
 public:
  Scope(const keel_host* host, keel_edit* edit, Model& model, Graph& graph, const Scope* outer)
      : host_(host), edit_(edit), model_(model), graph_(graph), outer_(outer) {}

  const keel_host* host() const { return host_; }
  keel_edit* edit() const { return edit_; }
  Model& model() const { return model_; }
  Graph& graph() const { return graph_; }

  keel_tensor type(keel_value v) const;
  Dims dims(keel_value v) const;
  // The ONNX name of a value; a constant becomes an initializer.
  std::string name(keel_value v);
  // From now on the value has this name, and its sizes are known.
  void set(keel_value v, const std::string& name);
  // The name that its node shall write: that of the graph's result, or a fresh one.
  std::string fresh(keel_value v);
  void want(keel_value v, const std::string& name) { wanted_.try_emplace(v, name); }
  // Makes the value the graph's next output under this name.
  void output(keel_value v, const std::string& name);
  // The graph's next input is the value, under a name of its own.
  void input(keel_value v, const std::string& name);

  std::string add(const char* op, const Names& in, NodeAttrs attrs = {}, const std::string& out = "");
  Names add_many(const char* op, const Names& in, NodeAttrs attrs, size_t n);

  // A dim as an i64 value of one element; dims as a list.
  std::string size(keel_dim d);
  std::string shape(const Dims& dims);
  std::string text(keel_dim d) const;
  keel_dim sum(keel_dim a, int64_t b) const;
  // Names for value_info: numbers and symbols.
  Names labels(const Dims& dims) const;

 private:
  friend class SizeReader;
  std::string symbol(std::string_view name);
  std::string arithmetic(const char* op, const std::string& a, const std::string& b);
  const std::string* find_size(const std::string& text) const;

  const keel_host* host_;
  keel_edit* edit_;
  Model& model_;
  Graph& graph_;
  const Scope* outer_;
  std::map<keel_value, std::string> names_, wanted_;
  struct Place {
    std::string value;
    int32_t axis;
  };
  std::map<std::string, Place, std::less<>> symbols_;  // where a symbol is the size of a value
  std::map<std::string, std::string> sizes_;           // values of expressions
};

}  // namespace onnx_export
