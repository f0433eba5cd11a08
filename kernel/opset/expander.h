// expander.h: writes a block of an op (its body, its vjp rule) out as nodes, for operands whose types are
// known.
//
// A block's values are values of the sink or weak literals; a literal becomes a constant of the dtype
// that inference of the op that takes it says. Names are bound before, each to one value or to a list of
// them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernel/base/hash.h"
#include "kernel/opset/infer_internal.h"

namespace keel::opset {

struct BodyValue {
  enum Kind : uint8_t { kNothing, kValue, kInt, kFloat, kMissing } kind = kNothing;
  BodySink::Value value = BodySink::kNone;
  double number = 0;
  TensorType type;  // kMissing: zeros of that type, written when somebody reads them
  static BodyValue Of(BodySink::Value v) { return {kValue, v, 0, {}}; }
};

class Expander : public LocalDims {
 public:
  using Value = BodySink::Value;
  Expander(const Catalogue& catalogue, Env& env, BodySink& sink);

  void Bind(const std::string& name, BodyValue value) { locals_[name] = std::move(value); }
  void Bind(const std::string& name, std::vector<BodyValue> list) { lists_[name] = std::move(list); }
  void BindOperands(std::span<const Value> in);
  // Statements up to the return, as written; or, if lazy, assignments only when their names are read.
  absl::StatusOr<const Statement*> Run(const Block& block, bool lazy);
  absl::StatusOr<BodyValue> One(const Expr& e);
  // The values of `x...`: a name bound to a list, or all results of a call.
  absl::StatusOr<std::vector<Value>> Many(const Expr& e);
  absl::StatusOr<Value> Filled(const TensorType& type, double number);  // that number everywhere

  // For shape functions that ask about a name of the block.
  absl::StatusOr<Dims> DimsOf(const std::string& name) override;
  absl::StatusOr<bool> IsGiven(const std::string& name) override;
  absl::Status Ask(std::string_view function, uint16_t operand, Val* out) override {
    return outer_ ? outer_->Ask(function, operand, out) : NotHere(function);
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
  HashMap<std::string, const Statement*> waiting_;  // lazy assignments, by the names that they bind
};

// The operands of a node, as inference wants them.
std::vector<Operand> TypesOf(std::span<const BodySink::Value> in, BodySink& sink);

}  // namespace keel::opset
