// expander.h: expands a block of an op (its body or gradient rule) into nodes, for operands of known types.
//
// A block's values are values of the sink or weak literals; a literal becomes a constant of the dtype that
// inference assigns it in the op that takes it. Names are bound before, each to one value or to a list of
// values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernel/base/hash.h"
#include "kernel/language/opset/infer_internal.h"

namespace keel::opset {

struct BodyValue {
  enum Kind : uint8_t { kNothing, kValue, kInt, kFloat, kMissing } kind = kNothing;
  BodySink::Value value = BodySink::kNone;
  double number = 0;
  TensorType type;  // kMissing: zeros of this type, emitted on the first read
  static BodyValue Of(BodySink::Value v) { return {kValue, v, 0, {}}; }
};

class Expander : public LocalDims {
 public:
  using Value = BodySink::Value;
  Expander(const Catalogue& catalogue, Env& env, BodySink& sink);

  void Bind(const std::string& name, BodyValue value) { locals_[name] = std::move(value); }
  void Bind(const std::string& name, std::vector<BodyValue> list) { lists_[name] = std::move(list); }
  void BindOperands(std::span<const Value> in);
  // Expands the statements up to the return; lazy: assignments are expanded when their names are read.
  absl::StatusOr<const Statement*> Run(const Block& block, bool lazy);
  absl::StatusOr<BodyValue> ValueOf(const Expr& e);
  // The values of `x...`: a name bound to a list, or all results of a call.
  absl::StatusOr<std::vector<Value>> ValuesOf(const Expr& e);
  absl::StatusOr<Value> Filled(const TensorType& type, double number);  // a tensor filled with `number`

  // For shape functions on names of the block.
  absl::StatusOr<Dims> DimsOf(const std::string& name) override;
  absl::StatusOr<bool> IsGiven(const std::string& name) override;
  absl::Status Query(std::string_view function, uint16_t operand, Val* out) override {
    return outer_ ? outer_->Query(function, operand, out) : OutsideRule(function);
  }

 private:
  absl::Status Assign(const Statement& s);
  absl::Status Read(const std::string& name, BodyValue** out);
  absl::Status Materialise(BodyValue* value);
  absl::StatusOr<BodyValue> Named(const Expr& e);
  absl::StatusOr<BodyValue> Negated(const Expr& e);
  absl::StatusOr<BodyValue> Infix(const Expr& e);
  absl::StatusOr<BodyValue> Apply(std::string_view op, const std::vector<BodyValue>& args);
  absl::StatusOr<std::vector<Value>> Call(const Expr& e);
  absl::StatusOr<Attrs> CallAttrs(const OpDef& def, const Expr& e);
  absl::StatusOr<std::vector<Value>> Node(const OpDef& def, const std::vector<BodyValue>& args,
                                          const Attrs& attrs);
  absl::Status Literals(const OpDef& def, const std::vector<BodyValue>& args, const Attrs& attrs,
                        std::vector<Value>* in);

  const Catalogue& catalogue_;
  Env& env_;
  LocalDims* outer_;
  BodySink& sink_;
  HashMap<std::string, BodyValue> locals_;
  HashMap<std::string, std::vector<BodyValue>> lists_;
  HashMap<std::string, const Statement*> lazy_;  // lazy assignments, by the names that they bind
};

}  // namespace keel::opset
