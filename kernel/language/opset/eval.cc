// eval.cc: static expressions. Operations on lists are elementwise; a scalar applies to all entries.

#include "kernel/language/opset/eval.h"

#include "kernel/language/opset/arith.h"
#include "kernel/language/opset/compare.h"
#include "kernel/language/opset/functions.h"

namespace keel::opset {
namespace {

template <typename F>  // F(int64_t a, int64_t b, int64_t* out) -> Status
absl::Status MapZip(Env& env, const Val& a, const Val& b, std::string_view op, Val* out, F&& each) {
  Zip x, y;
  size_t size = 0;
  RETURN_IF_ERROR(ZipBoth(env, a, b, op, &x, &y, &size));
  if (x.scalar && y.scalar) {
    int64_t result = 0;
    RETURN_IF_ERROR(each(x[0], y[0], &result));
    return out->Set(Val::kInt, result);
  }
  List results(size);
  for (size_t i = 0; i < size; i++) RETURN_IF_ERROR(each(x[i], y[i], &results[i]));
  return out->SetList(std::move(results));
}

// dims(x) and given(x) for a name bound in the block.
absl::Status EvalLocal(const Expr& e, Env& env, Val* out) {
  if (!env.locals) return env.Fail("'", e.function->name, "' requires an operand's name");
  if (e.function->name == "given") {
    ASSIGN_OR_RETURN(bool given, env.locals->IsGiven(e.parts[0].text));
    return out->Set(Val::kBool, given);
  }
  if (e.function->name != "dims") return LocalDims::OutsideRule(e.text);
  ASSIGN_OR_RETURN(Dims dims, env.locals->DimsOf(e.parts[0].text));
  out->kind = Val::kList;
  out->list.assign(dims.begin(), dims.end());
  return absl::OkStatus();
}

// Functions whose arguments are names or conditions, not values.
absl::Status EvalSpecial(const Expr& e, Env& env, Val* out) {
  const Expr& arg = e.parts[0];
  if (e.function->name == "fits") {
    List a, b;
    RETURN_IF_ERROR(EvalList(e.parts[0], env, &a));
    RETURN_IF_ERROR(EvalList(e.parts[1], env, &b));
    Truth truth = Fits(env, a, b, [](Dim, Dim) {});
    if (truth == Truth::kUnknown) return env.Fail("fits(...) depends on symbols where it must be known");
    return out->Set(Val::kBool, truth == Truth::kTrue);
  }
  if (arg.ref != Expr::kOperand) return EvalLocal(e, env, out);
  bool present = arg.index < env.operands.size() && env.operands[arg.index].kind != Operand::kAbsent;
  if (e.function->name == "given") {
    return out->Set(Val::kBool, present);
  }
  if (!present) return env.Fail(e.text, "(", arg.text, ") of an omitted operand");
  if (e.function->name == "dtype") {
    return out->Set(Val::kDType, static_cast<int64_t>(env.operands[arg.index].type.dtype));
  }
  if (e.function->name != "dims")
    return env.locals ? env.locals->Query(e.text, arg.index, out) : LocalDims::OutsideRule(e.text);
  const Dims& dims = env.operands[arg.index].type.dims;
  out->kind = Val::kList;
  out->list.assign(dims.begin(), dims.end());
  return absl::OkStatus();
}

absl::Status EvalItems(const Expr& e, Env& env, Val* out) {
  List items;
  for (const Expr& part : e.parts) {
    Val v;
    RETURN_IF_ERROR(Eval(part.kind == Expr::kSplice ? part.parts[0] : part, env, &v));
    if (part.kind == Expr::kSplice && v.kind == Val::kList)
      items.insert(items.end(), v.list.begin(), v.list.end());
    else if (v.kind == Val::kInt)
      items.push_back(v.i);
    else
      return env.Fail("a list contains integers and dims");
    if (items.size() > kMaxList) return env.Fail("a list is longer than ", kMaxList);
  }
  return out->SetList(std::move(items));
}

absl::Status EvalName(const Expr& e, Env& env, Val* out) {
  switch (e.ref) {
    case Expr::kSlot:
      if (env.slots[e.index].kind == Val::kNone) return env.Fail("'", e.text, "' has no value here");
      *out = env.slots[e.index];
      return absl::OkStatus();
    case Expr::kType:
      return out->Set(Val::kDType, static_cast<int64_t>(env.types[e.index]));
    case Expr::kDType:
      return out->Set(Val::kDType, e.index);
    case Expr::kBool:
      return out->Set(Val::kBool, e.index);
    case Expr::kNumber:
      return out->SetFloat(e.f);
    default:
      return env.Fail("'", e.text, "' is not a static name");
  }
}

absl::Status EvalNeg(const Expr& e, Env& env, Val* out) {
  Val v, zero;
  RETURN_IF_ERROR(Eval(e.parts[0], env, &v));
  if (v.kind == Val::kFloat) {
    return out->SetFloat(-v.f);
  }
  zero.kind = Val::kInt;
  return MapZip(env, zero, v, "-", out,
                [&](int64_t a, int64_t b, int64_t* r) { return Arith(env, BinOp::kSub, a, b, r); });
}

absl::Status FloatArith(const Env& env, BinOp op, double a, double b, Val* out) {
  out->kind = Val::kFloat;
  if (op == BinOp::kAdd)
    out->f = a + b;
  else if (op == BinOp::kSub)
    out->f = a - b;
  else if (op == BinOp::kMul)
    out->f = a * b;
  else if (op == BinOp::kDiv)
    out->f = a / b;
  else
    return env.Fail("'", Info(op).text, "' does not apply to floats");
  return absl::OkStatus();
}

absl::Status EvalBinary(const Expr& e, Env& env, Val* out) {
  out->kind = Val::kBool;
  if (e.op == BinOp::kAnd || e.op == BinOp::kOr) {
    bool a = false, b = false;
    RETURN_IF_ERROR(EvalBool(e.parts[0], env, &a));
    bool decided = a == (e.op == BinOp::kOr);
    if (!decided) RETURN_IF_ERROR(EvalBool(e.parts[1], env, &b));
    return out->Set(Val::kBool, decided ? a : b);
  }
  Val a, b;
  RETURN_IF_ERROR(Eval(e.parts[0], env, &a));
  RETURN_IF_ERROR(Eval(e.parts[1], env, &b));
  if (e.op >= BinOp::kEq) {
    Truth truth = Truth::kUnknown;
    RETURN_IF_ERROR(CompareVals(env, e.op, a, b, &truth));
    if (truth == Truth::kUnknown)
      return env.Fail("'", Info(e.op).text, "' depends on symbols where it must be known");
    return out->Set(Val::kBool, truth == Truth::kTrue);
  }
  if ((a.kind == Val::kFloat || b.kind == Val::kFloat || e.op == BinOp::kDiv) && IsNumberOrFloat(a) &&
      IsNumberOrFloat(b))
    return FloatArith(env, e.op, AsFloat(a), AsFloat(b), out);
  return MapZip(env, a, b, Info(e.op).text, out,
                [&](int64_t x, int64_t y, int64_t* r) { return Arith(env, e.op, x, y, r); });
}

absl::Status EvalCall(const Expr& e, Env& env, Val* out) {
  if (!e.function) return env.Fail("'", e.text, "' is not a shape function");
  const Function& f = *e.function;
  if (!f.call && !f.each) return EvalSpecial(e, env, out);
  absl::InlinedVector<Val, 3> args(e.parts.size());
  for (size_t i = 0; i < args.size(); i++) RETURN_IF_ERROR(Eval(e.parts[i], env, &args[i]));
  if (f.each)
    return MapZip(env, args[0], args[1], f.name, out,
                  [&](int64_t a, int64_t b, int64_t* r) { return f.each(env, a, b, r); });
  RETURN_IF_ERROR(CheckArguments(env, f, args));
  return f.call(env, args, out);
}

}  // namespace

absl::Status Eval(const Expr& e, Env& env, Val* out) {
  switch (e.kind) {
    case Expr::kInt:
      return out->Set(Val::kInt, e.i);
    case Expr::kFloat:
      return out->SetFloat(e.f);
    case Expr::kString:
      out->kind = Val::kStr;
      out->s = e.text;
      return absl::OkStatus();
    case Expr::kName:
      return EvalName(e, env, out);
    case Expr::kList:
      return EvalItems(e, env, out);
    case Expr::kNeg:
      return EvalNeg(e, env, out);
    case Expr::kNot: {
      bool b = false;
      RETURN_IF_ERROR(EvalBool(e.parts[0], env, &b));
      return out->Set(Val::kBool, !b);
    }
    case Expr::kBinary:
      return EvalBinary(e, env, out);
    case Expr::kCond: {
      bool b = false;
      RETURN_IF_ERROR(EvalBool(e.parts[0], env, &b));
      return Eval(e.parts[b ? 1 : 2], env, out);
    }
    case Expr::kCall:
      return EvalCall(e, env, out);
    case Expr::kSplice:
      break;
  }
  return env.Fail("'..' is allowed only in lists");
}

absl::Status EvalInt(const Expr& e, Env& env, int64_t* out) {
  if (e.kind == Expr::kName && e.ref == Expr::kSlot && env.slots[e.index].kind == Val::kInt) {
    *out = env.slots[e.index].i;
    return absl::OkStatus();
  }
  Val v;
  RETURN_IF_ERROR(Eval(e, env, &v));
  if (v.kind != Val::kInt)
    return env.Fail("expected an integer or a dim", e.text.empty() ? "" : " in ", e.text);
  *out = v.i;
  return absl::OkStatus();
}

absl::Status EvalList(const Expr& e, Env& env, List* out) {
  Val v;
  RETURN_IF_ERROR(Eval(e, env, &v));
  if (v.kind == Val::kInt)
    out->assign(1, v.i);
  else if (v.kind == Val::kList)
    *out = std::move(v.list);
  else
    return env.Fail("expected a list of integers or dims", e.text.empty() ? "" : " in ", e.text);
  return absl::OkStatus();
}

absl::Status EvalBool(const Expr& e, Env& env, bool* out) {
  Val v;
  RETURN_IF_ERROR(Eval(e, env, &v));
  if (v.kind != Val::kBool) return env.Fail("expected true or false", e.text.empty() ? "" : " in ", e.text);
  *out = v.i != 0;
  return absl::OkStatus();
}

std::string Fill(const Template& t, Env& env) {
  std::string out = t.literals[0];
  for (size_t i = 0; i < t.holes.size(); i++) {
    Val v;
    if (!Eval(t.holes[i], env, &v).ok() || v.kind == Val::kNone)
      out += t.holes[i].text.empty() ? "?" : t.holes[i].text;
    else if (v.kind == Val::kInt)
      out += env.Print(v.i);
    else if (v.kind == Val::kList)
      out += env.Print(v.list);
    else if (v.kind == Val::kFloat)
      out += PrintFloat(v.f);
    else if (v.kind == Val::kBool)
      out += v.i ? "true" : "false";
    else if (v.kind == Val::kDType)
      out += keel::Name(static_cast<DType>(v.i));
    else
      out += v.s;
    out += t.literals[i + 1];
  }
  return out;
}

}  // namespace keel::opset
