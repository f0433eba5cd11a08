// require.cc: a check that fails for all sizes is an error; one that depends on symbols is recorded.
#include "kernel/language/opset/require.h"

#include <utility>

#include "kernel/language/opset/arith.h"
#include "kernel/language/opset/compare.h"
#include "kernel/language/opset/eval.h"
#include "kernel/language/opset/functions.h"

namespace keel::opset {
namespace {

// Records a OP b for each entry that depends on symbols. Only == and <= can be recorded.
absl::Status RecordComparison(const CheckDef& check, Env& env, BinOp op, const Val& a, const Val& b) {
  Zip x, y;
  size_t size = 0;
  RETURN_IF_ERROR(ZipBoth(env, a, b, Info(op).text, &x, &y, &size));
  for (size_t i = 0; i < size; i++) {
    int64_t l = x[i], r = y[i];
    if (CompareDims(env, op, l, r) != Truth::kUnknown) continue;
    if (op == BinOp::kNe) return env.Fail("'!=' depends on symbols where it must be known");
    if (op == BinOp::kGt || op == BinOp::kGe) std::swap(l, r);
    if (op == BinOp::kLt || op == BinOp::kGt) RETURN_IF_ERROR(Arith(env, BinOp::kAdd, l, 1, &l));
    env.AddCheck(l, r, op == BinOp::kEq, Fill(check.message, env));
  }
  return absl::OkStatus();
}

absl::Status RequireExpr(const Expr& e, const CheckDef& check, Env& env) {
  if (e.kind == Expr::kBinary && e.op == BinOp::kAnd) {
    RETURN_IF_ERROR(RequireExpr(e.parts[0], check, env));
    return RequireExpr(e.parts[1], check, env);
  }
  if (e.kind == Expr::kBinary && e.op == BinOp::kOr) {
    bool first = false;
    RETURN_IF_ERROR(EvalBool(e.parts[0], env, &first));
    return first ? absl::OkStatus() : RequireExpr(e.parts[1], check, env);
  }
  Truth truth = Truth::kUnknown;
  if (e.kind == Expr::kBinary && e.op >= BinOp::kEq && e.op <= BinOp::kGe) {
    Val a, b;
    RETURN_IF_ERROR(Eval(e.parts[0], env, &a));
    RETURN_IF_ERROR(Eval(e.parts[1], env, &b));
    RETURN_IF_ERROR(CompareVals(env, e.op, a, b, &truth));
    if (truth == Truth::kUnknown) return RecordComparison(check, env, e.op, a, b);
  } else if (e.kind == Expr::kCall && e.function && e.function->name == "fits") {
    List a, b;
    RETURN_IF_ERROR(EvalList(e.parts[0], env, &a));
    RETURN_IF_ERROR(EvalList(e.parts[1], env, &b));
    truth = Fits(env, a, b, [](int64_t, int64_t) {});
    if (truth == Truth::kUnknown)
      Fits(env, a, b, [&](int64_t x, int64_t y) { env.AddCheck(x, y, true, Fill(check.message, env)); });
  } else {
    bool b = false;
    RETURN_IF_ERROR(EvalBool(e, env, &b));
    truth = b ? Truth::kTrue : Truth::kFalse;
  }
  return truth == Truth::kFalse ? env.FailWith(Fill(check.message, env)) : absl::OkStatus();
}

}  // namespace

absl::Status Require(const CheckDef& check, Env& env) { return RequireExpr(check.condition, check, env); }

}  // namespace keel::opset
