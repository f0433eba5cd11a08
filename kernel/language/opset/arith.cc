// arith.cc: arithmetic and comparison of two dims. Numbers do not use the table.

#include "kernel/language/opset/arith.h"

#include <algorithm>

namespace keel::opset {

absl::Status Arith(Env& env, BinOp op, int64_t a, int64_t b, int64_t* out) {
  if (IsSymbolic(a) || IsSymbolic(b)) {
    absl::StatusOr<Dim> r = op == BinOp::kAdd   ? env.dims.Add(a, b)
                            : op == BinOp::kSub ? env.dims.Sub(a, b)
                            : op == BinOp::kMul ? env.dims.Mul(a, b)
                                                : env.dims.FloorDiv(a, b);
    if (op == BinOp::kMod && r.ok()) r = env.dims.Mul(*r, b);
    if (op == BinOp::kMod && r.ok()) r = env.dims.Sub(a, *r);
    if (op == BinOp::kDiv) return env.Fail("'/' does not apply to dims; use //, which rounds down");
    if (!r.ok()) return env.Fail(r.status().message());
    *out = *r;
    return absl::OkStatus();
  }
  bool overflow = false;
  if (op == BinOp::kAdd)
    overflow = __builtin_add_overflow(a, b, out);
  else if (op == BinOp::kSub)
    overflow = __builtin_sub_overflow(a, b, out);
  else if (op == BinOp::kMul)
    overflow = __builtin_mul_overflow(a, b, out);
  else if (b == 0)
    return env.Fail("division by zero");
  else if (op == BinOp::kFloorDiv)
    *out = a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
  else if (op == BinOp::kMod)
    *out = a % b + (a % b != 0 && (a % b < 0) != (b < 0) ? b : 0);
  else
    return env.Fail("'/' does not apply to integers; use //, which rounds down");
  return overflow || IsSymbolic(*out) ? env.Fail("an integer overflows 63 bits") : absl::OkStatus();
}

absl::Status MaxMin(Env& env, bool max, int64_t a, int64_t b, int64_t* out) {
  if (!IsSymbolic(a) && !IsSymbolic(b)) {
    *out = max ? std::max(a, b) : std::min(a, b);
    return absl::OkStatus();
  }
  absl::StatusOr<Dim> r = max ? env.dims.Max(a, b) : env.dims.Min(a, b);
  if (!r.ok()) return env.Fail(r.status().message());
  *out = *r;
  return absl::OkStatus();
}

Truth CompareDims(const Env& env, BinOp op, int64_t a, int64_t b) {
  auto known = [](bool t) { return t ? Truth::kTrue : Truth::kFalse; };
  if (op == BinOp::kGt) return CompareDims(env, BinOp::kLt, b, a);
  if (op == BinOp::kGe) return CompareDims(env, BinOp::kLe, b, a);
  if (!IsSymbolic(a) && !IsSymbolic(b))
    return known(op == BinOp::kEq ? a == b : op == BinOp::kNe ? a != b : op == BinOp::kLt ? a < b : a <= b);
  Order order = env.dims.Compare(a, b);
  if (op == BinOp::kLe && env.dims.AlwaysLessEqual(a, b)) return Truth::kTrue;
  if (op == BinOp::kLt && env.dims.AlwaysLessEqual(b, a)) return Truth::kFalse;
  if (order == Order::kUnknown) return Truth::kUnknown;
  bool equal = order == Order::kEqual, less = order == Order::kLess;
  return known(op == BinOp::kEq   ? equal
               : op == BinOp::kNe ? !equal
               : op == BinOp::kLt ? less
                                  : less || equal);
}

}  // namespace keel::opset
