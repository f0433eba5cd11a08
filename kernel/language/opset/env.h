// env.h: static values, and the state of inference (Env), which binds names to them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "kernel/language/opset/def.h"

namespace keel::opset {

using List = absl::InlinedVector<int64_t, 8>;

// A static value. Dims and integers are both kInt: a number, or a handle of the DimTable.
struct Val {
  enum Kind : uint8_t { kNone, kInt, kFloat, kBool, kStr, kDType, kList, kFloats } kind = kNone;
  int64_t i = 0;  // kInt; kBool: 0 or 1; kDType
  double f = 0;
  List list;
  std::string_view s;              // borrowed from the definition or the given attributes
  std::span<const double> floats;  // borrowed from there, too

  absl::Status Set(Kind set, int64_t number) {
    kind = set;
    i = number;
    return absl::OkStatus();
  }
  absl::Status SetFloat(double number) {
    kind = kFloat;
    f = number;
    return absl::OkStatus();
  }
  absl::Status SetList(List entries) {
    kind = kList;
    list = std::move(entries);
    return absl::OkStatus();
  }
};

// Truth of a condition on dims. kUnknown: it depends on symbols.
enum class Truth : uint8_t { kFalse, kTrue, kUnknown };

// Facts about names bound in a block, for static expressions (expander.h).
class LocalDims {
 public:
  virtual ~LocalDims() = default;
  virtual absl::StatusOr<Dims> DimsOf(const std::string& name) = 0;
  virtual absl::StatusOr<bool> IsGiven(const std::string& name) = 0;
  // For rewrite rules (kernel/runtime/rules): uses, constant, number, invertible of an operand.
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

}  // namespace keel::opset
