#include "kernel/language/opset/compare.h"

#include "kernel/language/opset/arith.h"

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

Truth Fits(const Env& env, std::span<const int64_t> a, std::span<const int64_t> b,
           absl::FunctionRef<void(Dim, Dim)> unknown) {
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

}  // namespace keel::opset
