// eval.h: the state of inference (Env), and the evaluation of static expressions.
#pragma once

#include "kernel/opset/def.h"
#include "kernel/opset/functions.h"

namespace keel::opset {

// Truth of a condition on dims. kUnknown: it depends on symbols.
enum class Truth : uint8_t { kFalse, kTrue, kUnknown };

// Facts about names bound in a block, for static expressions (expander.h).
class LocalDims {
 public:
  virtual ~LocalDims() = default;
  virtual absl::StatusOr<Dims> DimsOf(const std::string& name) = 0;
  virtual absl::StatusOr<bool> IsGiven(const std::string& name) = 0;
  // For rewrite rules (kernel/rules): uses, constant, number, invertible of an operand.
  virtual absl::Status Query(std::string_view function, uint16_t /*operand*/, Val* /*out*/) {
    return OutsideRule(function);
  }
  static absl::Status OutsideRule(std::string_view function) {
    return Invalid("'", function, "' is allowed only in rules, for matched values");
  }
};

struct Env {
  Env(const OpDef& d, DimTable& t) : def(d), dims(t), slots(d.slots.size()), bound_by(d.slots.size(), -1) {}

  const OpDef& def;
  DimTable& dims;
  absl::InlinedVector<Val, 8> slots;
  absl::InlinedVector<int16_t, 16> bound_by;  // the operand that bound a slot; -1: none
  DType types[kMaxOpTypes] = {};
  int16_t type_bound_by[kMaxOpTypes];
  std::span<const Operand> operands;
  std::vector<Inferred::Check>* checks = nullptr;
  int64_t each = -1;            // index in a variadic result
  LocalDims* locals = nullptr;  // while a block is expanded

  // "add: MESSAGE: a is f32[2], b is f32[3]".
  template <typename... Parts>
  [[gnu::always_inline]] absl::Status Fail(const Parts&... parts) const {
    return FailWithPieces<PieceArgument<Parts>...>(parts...);
  }
  template <typename... Passed>  // few instances, as of ErrorOfPieces
  absl::Status FailWithPieces(Passed... parts) const {
    return FailWith(Joined({MessagePiece(parts)...}));
  }
  absl::Status FailWith(std::string message) const;
  std::string Print(int64_t dim) const { return dims.Print(dim); }
  std::string Print(std::span<const int64_t> list) const;
  std::string PrintOperand(size_t index) const;
  std::string OperandName(size_t index) const;
  void AddCheck(Dim a, Dim b, bool equal, std::string message);
};

absl::Status Eval(const Expr&, Env&, Val* out);
absl::Status EvalInt(const Expr&, Env&, int64_t* out);
absl::Status EvalList(const Expr&, Env&, List* out);  // a scalar becomes a list of one
absl::Status EvalBool(const Expr&, Env&, bool* out);  // unknown is an error
std::string Fill(const Template&, Env&);              // an expression that fails is replaced by "?"

// a OP b for numbers or dims; overflow is an error.
absl::Status Arith(Env&, BinOp, int64_t a, int64_t b, int64_t* out);
absl::Status MaxMin(Env&, bool max, int64_t a, int64_t b, int64_t* out);
Truth CompareDims(const Env&, BinOp, int64_t a, int64_t b);
// An error if the check fails, a recorded check if it depends on symbols.
absl::Status Require(const CheckDef&, Env&);

}  // namespace keel::opset
