// compare.cc: comparisons, and the `check` clauses of ops: a check that fails for all sizes is an error; one
// that depends on symbols is recorded.

#include "kernel/opset/compare.h"

namespace keel::opset {
namespace {

absl::Status AsZip(const Env& env, const Val& v, std::string_view what, Zip* out) {
  if (v.kind == Val::kInt) {
    *out = Zip{&v.i, 1, true};
  } else if (v.kind == Val::kList) {
    *out = Zip{v.list.data(), v.list.size(), false};
  } else {
    return env.Fail("'", what, "' requires integers, dims or lists of them");
  }
  return absl::OkStatus();
}

Truth Both(Truth a, Truth b) {
  if (a == Truth::kFalse || b == Truth::kFalse) return Truth::kFalse;
  return a == Truth::kUnknown ? a : b;
}

absl::Status CompareFloats(BinOp op, double a, double b, Truth* out) {
  bool r = op == BinOp::kEq   ? a == b
           : op == BinOp::kNe ? a != b
           : op == BinOp::kLt ? a < b
           : op == BinOp::kLe ? a <= b
           : op == BinOp::kGt ? a > b
                              : a >= b;
  *out = r ? Truth::kTrue : Truth::kFalse;
  return absl::OkStatus();
}

// Words (dtypes, enum choices, bools) compare for equality only.
absl::Status CompareWords(const Env& env, BinOp op, const Val& a, const Val& b, Truth* out) {
  if (a.kind != b.kind || (op != BinOp::kEq && op != BinOp::kNe))
    return env.Fail("'", Info(op).text, "' compares values of different kinds");
  bool same = a.kind == Val::kStr ? a.s == b.s : a.i == b.i;
  *out = same == (op == BinOp::kEq) ? Truth::kTrue : Truth::kFalse;
  return absl::OkStatus();
}

bool IsWord(const Val& v) { return v.kind == Val::kStr || v.kind == Val::kDType || v.kind == Val::kBool; }

// Whether shape `a` broadcasts to shape `b`. Calls unknown(dim of a, dim of b) if that depends on symbols.
template <typename F>
Truth Fits(const Env& env, std::span<const int64_t> a, std::span<const int64_t> b, F&& unknown) {
  if (a.size() > b.size()) return Truth::kFalse;
  Truth all = Truth::kTrue;
  for (size_t i = 0; i < a.size(); i++) {
    int64_t x = a[i], y = b[b.size() - a.size() + i];
    if (x == 1) continue;
    Truth equal = CompareDims(env, BinOp::kEq, x, y);
    if (equal == Truth::kUnknown) unknown(x, y);
    all = Both(all, equal);
  }
  return all;
}

absl::Status FitsArgs(const Expr& e, Env& env, List* a, List* b) {
  RETURN_IF_ERROR(EvalList(e.parts[0], env, a));
  return EvalList(e.parts[1], env, b);
}

}  // namespace

absl::Status ZipBoth(const Env& env, const Val& a, const Val& b, std::string_view op, Zip* x, Zip* y,
                     size_t* size) {
  RETURN_IF_ERROR(AsZip(env, a, op, x));
  RETURN_IF_ERROR(AsZip(env, b, op, y));
  *size = x->scalar ? y->size : x->size;
  if (!x->scalar && !y->scalar && x->size != y->size)
    return env.Fail("'", op, "' of lists of ", x->size, " and ", y->size, " entries");
  return absl::OkStatus();
}

bool IsNumberOrFloat(const Val& v) {
  return v.kind == Val::kFloat || (v.kind == Val::kInt && !IsSymbolic(v.i));
}
double AsFloat(const Val& v) { return v.kind == Val::kFloat ? v.f : static_cast<double>(v.i); }

absl::Status CompareVals(Env& env, BinOp op, const Val& a, const Val& b, Truth* out) {
  if ((a.kind == Val::kFloat || b.kind == Val::kFloat) && IsNumberOrFloat(a) && IsNumberOrFloat(b))
    return CompareFloats(op, AsFloat(a), AsFloat(b), out);
  if (IsWord(a) || IsWord(b)) return CompareWords(env, op, a, b, out);
  Zip x, y;
  size_t size = 0;
  RETURN_IF_ERROR(ZipBoth(env, a, b, Info(op).text, &x, &y, &size));
  *out = Truth::kTrue;
  for (size_t i = 0; i < size; i++) *out = Both(*out, CompareDims(env, op, x[i], y[i]));
  return absl::OkStatus();
}

absl::Status EvalFits(const Expr& e, Env& env, Truth* out) {
  List a, b;
  RETURN_IF_ERROR(FitsArgs(e, env, &a, &b));
  *out = Fits(env, a, b, [](int64_t, int64_t) {});
  return absl::OkStatus();
}

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
  Truth truth = Truth::kUnknown;
  if (e.kind == Expr::kBinary && e.op >= BinOp::kEq && e.op <= BinOp::kGe) {
    Val a, b;
    RETURN_IF_ERROR(Eval(e.parts[0], env, &a));
    RETURN_IF_ERROR(Eval(e.parts[1], env, &b));
    RETURN_IF_ERROR(CompareVals(env, e.op, a, b, &truth));
    if (truth == Truth::kUnknown) return RecordComparison(check, env, e.op, a, b);
  } else if (e.kind == Expr::kCall && e.function && e.function->name == "fits") {
    List a, b;
    RETURN_IF_ERROR(FitsArgs(e, env, &a, &b));
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
