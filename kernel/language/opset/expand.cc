// expand.cc: the Expander, and the expansion of bodies.

#include <algorithm>

#include "kernel/language/opset/expander.h"

namespace keel {
namespace opset {
namespace {

using Value = BodySink::Value;

// The attribute kind of a static value; `wanted` (of the op's definition) distinguishes dims from integers.
int32_t OwnKind(const Val& v, int32_t wanted) {
  constexpr int32_t kKinds[] = {KEEL_ATTR_NONE, KEEL_ATTR_I64,   KEEL_ATTR_F64,  KEEL_ATTR_BOOL,
                                KEEL_ATTR_STR,  KEEL_ATTR_DTYPE, KEEL_ATTR_I64S, KEEL_ATTR_F64S};
  bool number = v.kind == Val::kInt && (wanted == KEEL_ATTR_F64 || wanted == KEEL_ATTR_DIM);
  return number || (v.kind == Val::kList && wanted == KEEL_ATTR_DIMS) ? wanted : kKinds[v.kind];
}

}  // namespace

Expander::Expander(const Catalogue& catalogue, Env& env, BodySink& sink)
    : catalogue_(catalogue), env_(env), outer_(env.locals), sink_(sink) {
  env_.locals = this;
}

void Expander::BindOperands(std::span<const Value> in) {
  const OpDef& def = env_.def;
  for (size_t i = 0; i < def.operands.size() && !def.operands[i].variadic; i++)
    if (i < in.size() && in[i] != BodySink::kNone) Bind(def.operands[i].name, BodyValue::Of(in[i]));
  if (!def.has_variadic) return;
  std::vector<BodyValue> rest;
  for (size_t i = def.operands.size() - 1; i < in.size(); i++) rest.push_back(BodyValue::Of(in[i]));
  Bind(def.operands.back().name, std::move(rest));
}

absl::StatusOr<const Statement*> Expander::Run(const Block& block, bool lazy) {
  for (const Statement& s : block) {
    if (s.kind == Statement::kReturn) return &s;
    if (s.kind == Statement::kAssign && lazy) {
      for (const std::string& name : s.names) lazy_[name] = &s;
      continue;
    }
    RETURN_IF_ERROR(s.kind == Statement::kLet ? Eval(s.values[0], env_, &env_.slots[s.slot]) : Assign(s));
  }
  return env_.Fail("its body returns nothing");
}

absl::Status Expander::Assign(const Statement& s) {
  if (s.names.size() == 1) {
    ASSIGN_OR_RETURN(BodyValue value, ValueOf(s.values[0]));
    Bind(s.names[0], std::move(value));
    return absl::OkStatus();
  }
  if (s.values[0].kind != Expr::kCall) return env_.Fail("several names take the results of a call");
  ASSIGN_OR_RETURN(std::vector<Value> results, Call(s.values[0]));
  if (results.size() != s.names.size())
    return env_.Fail(s.values[0].text, " has ", results.size(), " results, not ", s.names.size());
  for (size_t i = 0; i < results.size(); i++) Bind(s.names[i], BodyValue::Of(results[i]));
  return absl::OkStatus();
}

// The value of a local name, after expanding the lazy assignment that binds it; null: not a local name.
absl::Status Expander::Read(const std::string& name, BodyValue** out) {
  if (auto lazy = lazy_.find(name); lazy != lazy_.end()) {
    const Statement& s = *lazy->second;
    for (const std::string& bound : s.names) lazy_.erase(bound);
    RETURN_IF_ERROR(Assign(s));
  }
  auto local = locals_.find(name);
  *out = local == locals_.end() ? nullptr : &local->second;
  return absl::OkStatus();
}

absl::StatusOr<Dims> Expander::DimsOf(const std::string& name) {
  BodyValue* value = nullptr;
  RETURN_IF_ERROR(Read(name, &value));
  if (value && value->kind == BodyValue::kMissing) return value->type.dims;
  if (value && value->kind == BodyValue::kValue) return sink_.Type(value->value).dims;
  return env_.Fail("dims(", name, "): not a single value");
}

absl::StatusOr<bool> Expander::IsGiven(const std::string& name) {
  BodyValue* value = nullptr;
  RETURN_IF_ERROR(Read(name, &value));
  return value && value->kind != BodyValue::kMissing && value->kind != BodyValue::kNothing;
}

absl::StatusOr<Value> Expander::Filled(const TensorType& type, double number) {
  ASSIGN_OR_RETURN(Value scalar, sink_.Literal(type.dtype, number));
  if (type.dims.empty()) return scalar;
  AttrValue dims;
  dims.kind = KEEL_ATTR_DIMS;
  dims.list.assign(type.dims.begin(), type.dims.end());
  ASSIGN_OR_RETURN(std::vector<Value> out, sink_.Node("fill", {&scalar, 1}, {{"dims", dims}}));
  return out[0];
}

absl::Status Expander::Materialise(BodyValue* value) {
  if (value->kind != BodyValue::kMissing) return absl::OkStatus();
  ASSIGN_OR_RETURN(Value zeros, Filled(value->type, 0));
  *value = BodyValue::Of(zeros);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Value>> Expander::ValuesOf(const Expr& e) {
  if (e.kind == Expr::kCall) return Call(e);
  auto list = e.kind == Expr::kName ? lists_.find(e.text) : lists_.end();
  if (list == lists_.end()) return env_.Fail("'...' requires a variadic operand or a call");
  std::vector<Value> out;
  for (BodyValue& v : list->second) {
    RETURN_IF_ERROR(Materialise(&v));
    out.push_back(v.value);
  }
  return out;
}

absl::StatusOr<BodyValue> Expander::ValueOf(const Expr& e) {
  switch (e.kind) {
    case Expr::kInt:
      return BodyValue{BodyValue::kInt, BodySink::kNone, static_cast<double>(e.i), {}};
    case Expr::kFloat:
      return BodyValue{BodyValue::kFloat, BodySink::kNone, e.f, {}};
    case Expr::kName:
      return Named(e);
    case Expr::kNeg:
      return Negated(e);
    case Expr::kBinary:
      return Infix(e);
    case Expr::kCond: {
      bool condition = false;
      RETURN_IF_ERROR(EvalBool(e.parts[0], env_, &condition));
      return ValueOf(e.parts[condition ? 1 : 2]);
    }
    case Expr::kCall: {
      ASSIGN_OR_RETURN(std::vector<Value> results, Call(e));
      if (results.empty()) return env_.Fail(e.text, " has no result");
      return BodyValue::Of(results[0]);
    }
    default:
      return env_.Fail("its body contains an expression that is not a value");
  }
}

absl::StatusOr<BodyValue> Expander::Named(const Expr& e) {
  BodyValue* local = nullptr;
  RETURN_IF_ERROR(Read(e.text, &local));
  if (local) {
    RETURN_IF_ERROR(Materialise(local));
    return *local;
  }
  for (const auto& o : env_.def.operands)
    if (o.name == e.text)
      return o.optional ? absl::StatusOr<BodyValue>(BodyValue{})
                        : env_.Fail("'", e.text, "' is not one value");
  if (e.text == "none") return BodyValue{};
  Val v;
  RETURN_IF_ERROR(Eval(e, env_, &v));
  if (v.kind == Val::kFloat) return BodyValue{BodyValue::kFloat, BodySink::kNone, v.f, {}};
  if (v.kind == Val::kInt && !IsSymbolic(v.i))
    return BodyValue{BodyValue::kInt, BodySink::kNone, static_cast<double>(v.i), {}};
  return env_.Fail("'", e.text, "' is not a number; the op 'dim' converts a dim to a value");
}

absl::StatusOr<BodyValue> Expander::Negated(const Expr& e) {
  ASSIGN_OR_RETURN(BodyValue v, ValueOf(e.parts[0]));
  if (v.kind == BodyValue::kValue) return Apply("neg", {v});
  v.number = -v.number;
  return v;
}

absl::StatusOr<BodyValue> Expander::Infix(const Expr& e) {
  ASSIGN_OR_RETURN(BodyValue a, ValueOf(e.parts[0]));
  ASSIGN_OR_RETURN(BodyValue b, ValueOf(e.parts[1]));
  return Apply(Info(e.op).op, {a, b});
}

absl::StatusOr<BodyValue> Expander::Apply(std::string_view op, const std::vector<BodyValue>& args) {
  ASSIGN_OR_RETURN(const OpDef* def, catalogue_.Find(op, 0));
  ASSIGN_OR_RETURN(std::vector<Value> results, Node(*def, args, {}));
  if (results.empty()) return env_.Fail(op, " has no result");
  return BodyValue::Of(results[0]);
}

absl::StatusOr<std::vector<Value>> Expander::Call(const Expr& e) {
  std::vector<BodyValue> args;
  for (const Expr& part : e.parts) {
    if (part.kind == Expr::kSplice) {
      ASSIGN_OR_RETURN(std::vector<Value> all, ValuesOf(part.parts[0]));
      for (Value v : all) args.push_back(BodyValue::Of(v));
      continue;
    }
    ASSIGN_OR_RETURN(BodyValue v, ValueOf(part));
    args.push_back(v);
  }
  ASSIGN_OR_RETURN(const OpDef* def, catalogue_.Find(e.text, 0));
  ASSIGN_OR_RETURN(Attrs attrs, CallAttrs(*def, e));
  return Node(*def, args, attrs);
}

absl::StatusOr<Attrs> Expander::CallAttrs(const OpDef& def, const Expr& e) {
  Attrs out;
  for (const auto& [name, expr] : e.attrs) {
    int32_t wanted = KEEL_ATTR_NONE;
    bool word = false;
    for (const AttrDef& a : def.attrs) {
      if (a.name != name) continue;
      wanted = KindOf(a.type);
      word = a.type == AttrDef::kEnum;
    }
    Val v;
    if (word && expr.kind == Expr::kName && expr.ref == Expr::kNothing) {
      v.kind = Val::kStr;
      v.s = expr.text;
    } else {
      RETURN_IF_ERROR(Eval(expr, env_, &v));
    }
    Export(v, OwnKind(v, wanted), &out.emplace_back(Attr{name, {}}).value);
  }
  SortAttrs(&out);
  return out;
}

// Literals first become constants of the dtype that inference assigns them.
absl::StatusOr<std::vector<Value>> Expander::Node(const OpDef& def, const std::vector<BodyValue>& args,
                                                  const Attrs& attrs) {
  std::vector<Value> in;
  bool weak = false;
  for (const BodyValue& a : args) {
    weak |= a.kind == BodyValue::kInt || a.kind == BodyValue::kFloat;
    in.push_back(a.value);
  }
  if (weak) RETURN_IF_ERROR(Literals(def, args, attrs, &in));
  return sink_.Node(def.name, in, attrs);
}

absl::Status Expander::Literals(const OpDef& def, const std::vector<BodyValue>& args, const Attrs& attrs,
                                std::vector<Value>* in) {
  std::vector<Operand> operands(args.size());
  for (size_t i = 0; i < args.size(); i++) {
    switch (args[i].kind) {
      case BodyValue::kValue:
        operands[i].type = sink_.Type(args[i].value);
        break;
      case BodyValue::kInt:
        operands[i].kind = Operand::kWeakInt;
        break;
      case BodyValue::kFloat:
        operands[i].kind = Operand::kWeakFloat;
        break;
      default:
        operands[i].kind = Operand::kAbsent;
        break;
    }
  }
  Inferred inferred;
  RETURN_IF_ERROR(Infer(def, operands, attrs, env_.dims, &inferred));
  for (size_t i = 0; i < args.size(); i++) {
    if (args[i].kind != BodyValue::kInt && args[i].kind != BodyValue::kFloat) continue;
    ASSIGN_OR_RETURN((*in)[i], sink_.Literal(inferred.operand_dtypes[i], args[i].number));
  }
  return absl::OkStatus();
}

}  // namespace opset

absl::StatusOr<std::vector<BodySink::Value>> ExpandBody(const Catalogue& catalogue, const OpDef& def,
                                                        std::span<const BodySink::Value> in,
                                                        const Attrs& given, DimTable& dims, BodySink& sink) {
  using namespace opset;
  if (def.body.empty()) return Invalid(def.name, " has no body in other ops");
  std::vector<Operand> operands = OperandsOf(in, [&](BodySink::Value v) { return sink.Type(v); });
  Env env(def, dims);
  env.operands = operands;
  Inferred inferred;
  RETURN_IF_ERROR(InferInto(env, given, &inferred));
  Expander expander(catalogue, env, sink);
  expander.BindOperands(in);
  ASSIGN_OR_RETURN(const Statement* result, expander.Run(def.body, false));
  std::vector<BodySink::Value> out;
  for (const Expr& e : result->values) {
    if (e.kind == Expr::kSplice) {
      ASSIGN_OR_RETURN(std::vector<BodySink::Value> all, expander.ValuesOf(e.parts[0]));
      out.insert(out.end(), all.begin(), all.end());
      continue;
    }
    ASSIGN_OR_RETURN(BodyValue v, expander.ValueOf(e));
    if (v.kind != BodyValue::kValue) return env.Fail("its body returns a literal or none");
    out.push_back(v.value);
  }
  return out;
}

}  // namespace keel
