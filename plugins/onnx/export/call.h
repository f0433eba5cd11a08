// call.h: one Keel node as a converter sees it: operands by their ONNX names, types, attributes.
//
// A converter adds ONNX nodes and ends with give(), once per result. The table of each family has a Row for
// each op that it converts.
#pragma once
#include <span>
#include <string>

#include "plugins/onnx/export/scope.h"

namespace onnx_export {

struct Row;

class Call {
 public:
  Call(Scope& scope, uint32_t node, const keel_node* view);

  Scope& scope;
  const Row* row = nullptr;
  std::string op;
  uint32_t n_in = 0, n_out = 0;

  bool has(uint32_t i) const { return i < n_in && in_[i] != KEEL_NO_VALUE; }
  std::string in(uint32_t i) { return scope.name(in_[i]); }
  keel_value in_value(uint32_t i) const { return in_[i]; }
  keel_value out_value(uint32_t i) const { return out_[i]; }
  keel_dt dtype(uint32_t i = 0) const { return dtype_of(scope.type(in_[i])); }
  keel_dt out_dtype(uint32_t i = 0) const { return dtype_of(scope.type(out_[i])); }
  Dims dims(uint32_t i = 0) const { return scope.dims(in_[i]); }
  Dims out_dims(uint32_t i = 0) const { return scope.dims(out_[i]); }
  int64_t rank(uint32_t i = 0) const { return scope.type(in_[i]).ndim; }
  const void* data(uint32_t i) const { return scope.type(in_[i]).data; }  // null: not constant

  keel_attr attr(const char* name) const;
  int64_t number(const char* name) const { return attr(name).i; }
  bool flag(const char* name) const { return attr(name).i != 0; }
  double real(const char* name) const { return attr(name).f; }
  std::string word(const char* name) const;
  Dims list(const char* name) const;     // integers, dims, graphs
  Ints numbers(const char* name) const;  // dims that are known; refuses others

  std::string add(const char* op, const Names& in, NodeAttrs attrs = {}) {
    return scope.add(op, in, std::move(attrs));
  }
  std::string scalar(keel_dt dtype, double v) { return scope.model().scalar(dtype, v); }
  std::string ints(const Ints& v) { return scope.model().ints(v); }
  std::string cast(const std::string& x, keel_dt to);
  std::string reshape(const std::string& x, const Dims& to, const std::string& out = "");

  // The next result is that of a new node, or an existing value.
  void give(const char* op, const Names& in, NodeAttrs attrs = {});
  void give_reshaped(const std::string& x);  // in the dims of the result
  void give_cast(const std::string& x);      // in its dtype
  void give(const std::string& name) { scope.set(out_[given_++], name); }
  uint32_t given() const { return given_; }

 private:
  const keel_node* view_;
  const keel_value *in_ = nullptr, *out_ = nullptr;
  uint32_t given_ = 0;
};

struct Row {
  const char* op;
  void (*convert)(Call&);
  const char* onnx = nullptr;  // for plain(): the operator with the same operands
  // Of an op with a body: whether ONNX has a form of the node, whose body is written otherwise; null: always.
  bool (*fits)(const keel_host* host, const keel_node* node) = nullptr;
};

// The operator of the row.
void plain(Call& c);
// The operator of the row, with the attributes of CumSum (reduce.cc).
void running(Call& c);
// The dtype to compute in where an ONNX operator takes no integers of less than 32 bits: i32 for these, whose
// results wrap to the narrow one.
keel_dt wide_dtype(keel_dt dtype);

using Rows = std::span<const Row>;
Rows elementwise_rows();
Rows cast_rows();
Rows shape_rows();
Rows reduce_rows();
Rows index_rows();
Rows linear_rows();
Rows pool_rows();
Rows tree_rows();
Rows control_rows();
// Of ops with bodies.
Rows composite_rows();
Rows quantised_rows();

}  // namespace onnx_export
