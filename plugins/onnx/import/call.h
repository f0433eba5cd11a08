// call.h: one ONNX node during conversion, and the tables of conversion rules.
//
// A Rule names an operator, the first opset it serves, its converter, the attributes it supports and the
// operands whose values it needs. A converter reads operands and attributes through a Call and ends with
// done() or set(). Each file of ops/ (elementwise.cc, activation.cc, shape.cc ...) is a family with one table
// (bottom of this file).
#pragma once
#include <initializer_list>
#include <span>

#include "plugins/onnx/import/edit.h"
#include "plugins/onnx/import/failure.h"

namespace onnx_import {

using AttributeMap = std::map<Text, const Attribute*>;

class Call {
 public:
  Call(Edit& edit, const Node& n, int opset_version, AttributeMap attributes, std::vector<ValueP> inputs)
      : e(edit),
        node(n),
        opset(opset_version),
        in_(std::move(inputs)),
        attributes_(std::move(attributes)),
        out(n.outputs.size()) {}

  Edit& e;
  const Node& node;
  const int opset;

  // Operands. An omitted operand is a null pointer.
  size_t n_in() const { return in_.size(); }
  bool has(size_t i) const { return i < in_.size() && in_[i]; }
  Value& value(size_t i);
  keel_value in(size_t i) { return e.id(value(i)); }
  Ids all() {
    Ids v;
    for (size_t i = 0; i < n_in(); i++) v.push_back(in(i));
    return v;
  }
  Dims dims(size_t i) { return e.dims(value(i)); }
  int64_t rank(size_t i) { return static_cast<int64_t>(dims(i).size()); }
  keel_dt dtype(size_t i) { return e.dtype(value(i)); }
  const Sizes* known(size_t i) { return has(i) ? e.sizes(value(i)) : nullptr; }
  const Dims& list(size_t i);  // operand i as a list of sizes; throws if unknown
  Ints numbers(size_t i);      // the same, without symbols

  // Attributes, with defaults.
  const Attribute* attribute(Text name) const;
  int64_t i(Text name, int64_t otherwise) const;
  int64_t required(Text name) const;  // without a default
  double f(Text name, double otherwise) const;
  std::string s(Text name, const char* otherwise) const;
  Ints ints(Text name, Ints otherwise = {}) const;
  std::vector<std::string> strings(Text name) const;
  std::vector<float> floats(Text name) const;
  bool has_attribute(Text name) const { return attribute(name) != nullptr; }
  keel_dt type(Text name, keel_dt otherwise) const;
  int64_t axis(int64_t axis, int64_t rank) const;  // normalised; throws if out of range

  // Results. done() adds the node of result 0 and gives it the ONNX name.
  bool wants(size_t k) const { return k < node.outputs.size() && !node.outputs[k].empty(); }
  void done(const char* op, const Ids& in, const Attrs& attrs = {}) { set(0, e.op(op, in, attrs, name)); }
  void set(size_t k, keel_value v);
  void set(size_t k, Sizes s);
  void set(size_t k, ValueP v) {
    if (k < out.size()) out[k] = std::move(v);
  }
  void alias(size_t k, size_t i);
  void mark_missing();                     // its results need a parameter's value
  void expect_outputs(size_t most) const;  // throws if a later result is used

  [[noreturn]] void invalid(const std::string& why) const { refuse(KEEL_INVALID, cat(title(), ": ", why)); }
  [[noreturn]] void unsupported(const std::string& why) const {
    refuse(KEEL_UNIMPLEMENTED, cat(title(), ": ", why));
  }
  std::string title() const;

  std::string name;  // of result 0, as shown to users
  std::vector<ValueP>& inputs() { return in_; }

 private:
  std::vector<ValueP> in_;
  AttributeMap attributes_;

 public:
  std::vector<ValueP> out;
};

struct Rule {
  const char* op;
  int since;
  void (*convert)(Call&);
  const char* attributes = "";  // supported names, separated by spaces
  uint32_t values = 0;          // bit i: the value of operand i must be known at import
  bool moves = false;           // elements of the result are elements of operand 0, which may be strings
  bool lists = false;           // takes sequences and absent optionals (forms.h)
  bool strings = false;         // takes tensors of strings (text.h) itself
};
using Rules = std::span<const Rule>;
constexpr uint32_t bit(int i) { return 1u << i; }

Rules elementwise_rules();
Rules activation_rules();
Rules shape_rules();
Rules slice_rules();
Rules index_rules();
Rules generate_rules();
Rules reduce_rules();
Rules linear_rules();
Rules pool_rules();
Rules norm_rules();
Rules attention_rules();
Rules loss_rules();
Rules quantize_rules();
Rules resize_rules();
Rules signal_rules();
Rules random_rules();
Rules einsum_rules();
Rules qlinear_rules();
Rules place_rules();
Rules choose_rules();
Rules sequence_rules();
Rules string_rules();
Rules string_split_rules();
Rules string_case_rules();
Rules regex_rules();
Rules label_rules();
Rules ngram_rules();
Rules feature_rules();
Rules svm_rules();
Rules sample_rules();
Rules roi_rules();
Rules recurrent_rules();
Rules running_rules();
Rules training_rules();
Rules learning_rules();
Rules tree_rules();
Rules tree_node_rules();
Rules old_rules();
Rules contrib_rules();
Rules contrib_products_rules();
Rules contrib_quantised_rules();
Rules contrib_attention_rules();
// Operators of other domains are listed as "domain.Name", for any version. Null: none.
const Rule* find_rule(Text domain, Text op, int opset);
const std::multimap<Text, const Rule*>& rules_by_name();

// fold.cc: computes a node on known sizes; false: not possible.
bool fold(Call& c);
bool folds(Text op);

// Shared between families.
keel_dim broadcast(Edit& e, keel_dim a, keel_dim b);
Dims broadcast(Edit& e, const Dims& a, const Dims& b);
Ints counting(int64_t from, int64_t to);                                // from ... to-1
keel_value negative_index(Edit& e, keel_value index, keel_value size);  // resolves negative indices
bool never_negative(Call& c, size_t i);
bool stored_number(Call& c, size_t i, double* out);  // operand i is one number, known at import

}  // namespace onnx_import
