// expand.cc: writes an op's body out as nodes, for operands whose types are known.
//
// A body's values are values of the sink or weak literals; a literal becomes a constant of the dtype
// that inference of the op that takes it says.

#include <algorithm>

#include "kernel/base/hash.h"
#include "kernel/opset/infer_internal.h"

namespace keel {
namespace {

using opset::BinOp;
using opset::Env;
using opset::Expr;
using opset::Statement;
using opset::Val;
using Value = BodySink::Value;

struct BodyValue {
  enum Kind : uint8_t { kValue, kInt, kFloat, kNothing } kind = kNothing;
  Value value = BodySink::kNone;
  double number = 0;
};

AttrValue ToAttr(const Val& v, int32_t kind) {
  AttrValue out;
  out.kind = kind;
  out.i = v.kind == Val::kInt || v.kind == Val::kBool || v.kind == Val::kDType ? v.i : 0;
  out.f = v.kind == Val::kFloat ? v.f : v.kind == Val::kInt ? static_cast<double>(v.i) : 0;
  out.s = std::string(v.s);
  out.list.assign(v.list.begin(), v.list.end());
  out.floats.assign(v.floats.begin(), v.floats.end());
  return out;
}

// The kind that a static value has by itself; the op's definition decides between equals (a dim or an
// integer).
int32_t OwnKind(const Val& v, int32_t wanted) {
  switch (v.kind) {
    case Val::kInt:
      return wanted == KEEL_ATTR_F64 || wanted == KEEL_ATTR_DIM ? wanted : KEEL_ATTR_I64;
    case Val::kFloat:
      return KEEL_ATTR_F64;
    case Val::kBool:
      return KEEL_ATTR_BOOL;
    case Val::kStr:
      return KEEL_ATTR_STR;
    case Val::kDType:
      return KEEL_ATTR_DTYPE;
    case Val::kList:
      return wanted == KEEL_ATTR_DIMS ? wanted : KEEL_ATTR_I64S;
    case Val::kFloats:
      return KEEL_ATTR_F64S;
    case Val::kNone:
      break;
  }
  return KEEL_ATTR_NONE;
}

class Expander {
 public:
  Expander(const Catalogue& catalogue, Env& env, BodySink& sink)
      : catalogue_(catalogue), env_(env), sink_(sink) {}

  absl::StatusOr<std::vector<Value>> Run(std::span<const Value> in) {
    const OpDef& def = env_.def;
    for (size_t i = 0; i < def.operands.size() && !def.has_variadic; i++)
      if (i < in.size() && in[i] != BodySink::kNone)
        locals_[def.operands[i].name] = {BodyValue::kValue, in[i], 0};
    if (def.has_variadic)
      variadic_.assign(in.begin() + static_cast<ptrdiff_t>(def.operands.size() - 1), in.end());
    for (size_t i = 0; def.has_variadic && i + 1 < def.operands.size(); i++)
      locals_[def.operands[i].name] = {BodyValue::kValue, in[i], 0};
    for (const Statement& s : def.body) {
      if (s.kind == Statement::kReturn) return Return(s);
      RETURN_IF_ERROR(s.kind == Statement::kLet ? opset::Eval(s.values[0], env_, &env_.slots[s.slot])
                                                : Assign(s));
    }
    return env_.Fail("its body returns nothing");
  }

 private:
  absl::Status Assign(const Statement& s) {
    if (s.names.size() == 1) {
      ASSIGN_OR_RETURN(locals_[s.names[0]], One(s.values[0]));
      return absl::OkStatus();
    }
    if (s.values[0].kind != Expr::kCall) return env_.Fail("several names take the results of a call");
    ASSIGN_OR_RETURN(std::vector<Value> results, Call(s.values[0]));
    if (results.size() != s.names.size())
      return env_.Fail(s.values[0].text, " has ", results.size(), " results, not ", s.names.size());
    for (size_t i = 0; i < results.size(); i++) locals_[s.names[i]] = {BodyValue::kValue, results[i], 0};
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<Value>> Return(const Statement& s) {
    std::vector<Value> out;
    for (const Expr& e : s.values) {
      if (e.kind == Expr::kSplice) {
        ASSIGN_OR_RETURN(std::vector<Value> all, Many(e.parts[0]));
        out.insert(out.end(), all.begin(), all.end());
        continue;
      }
      ASSIGN_OR_RETURN(BodyValue v, One(e));
      if (v.kind != BodyValue::kValue) return env_.Fail("its body returns a literal or none");
      out.push_back(v.value);
    }
    return out;
  }

  // The values of `x...`: a variadic operand, or all results of a call.
  absl::StatusOr<std::vector<Value>> Many(const Expr& e) {
    if (e.kind == Expr::kCall) return Call(e);
    if (e.kind == Expr::kName && env_.def.has_variadic && e.text == env_.def.operands.back().name)
      return variadic_;
    return env_.Fail("'...' wants a variadic operand or a call");
  }

  absl::StatusOr<BodyValue> One(const Expr& e) {
    switch (e.kind) {
      case Expr::kInt:
        return BodyValue{BodyValue::kInt, BodySink::kNone, static_cast<double>(e.i)};
      case Expr::kFloat:
        return BodyValue{BodyValue::kFloat, BodySink::kNone, e.f};
      case Expr::kName:
        return Named(e);
      case Expr::kNeg:
        return Negated(e);
      case Expr::kBinary:
        return Infix(e);
      case Expr::kCond: {
        bool condition = false;
        RETURN_IF_ERROR(opset::EvalBool(e.parts[0], env_, &condition));
        return One(e.parts[condition ? 1 : 2]);
      }
      case Expr::kCall: {
        ASSIGN_OR_RETURN(std::vector<Value> results, Call(e));
        if (results.empty()) return env_.Fail(e.text, " has no result");
        return BodyValue{BodyValue::kValue, results[0], 0};
      }
      default:
        return env_.Fail("its body holds what is not a value");
    }
  }

  absl::StatusOr<BodyValue> Named(const Expr& e) {
    if (auto local = locals_.find(e.text); local != locals_.end()) return local->second;
    for (const auto& o : env_.def.operands)
      if (o.name == e.text)
        return o.optional ? absl::StatusOr<BodyValue>(BodyValue{})
                          : env_.Fail("'", e.text, "' is not one value");
    if (e.text == "none") return BodyValue{};
    Val v;
    RETURN_IF_ERROR(opset::Eval(e, env_, &v));
    if (v.kind == Val::kFloat) return BodyValue{BodyValue::kFloat, BodySink::kNone, v.f};
    if (v.kind == Val::kInt && !IsSymbolic(v.i))
      return BodyValue{BodyValue::kInt, BodySink::kNone, static_cast<double>(v.i)};
    return env_.Fail("'", e.text, "' is not a number; the op dim makes a dim a value");
  }

  absl::StatusOr<BodyValue> Negated(const Expr& e) {
    ASSIGN_OR_RETURN(BodyValue v, One(e.parts[0]));
    if (v.kind == BodyValue::kValue) return Apply("neg", {v}, {});
    v.number = -v.number;
    return v;
  }

  absl::StatusOr<BodyValue> Infix(const Expr& e) {
    ASSIGN_OR_RETURN(BodyValue a, One(e.parts[0]));
    ASSIGN_OR_RETURN(BodyValue b, One(e.parts[1]));
    return Apply(opset::Info(e.op).op, {a, b}, {});
  }

  absl::StatusOr<BodyValue> Apply(std::string_view op, const std::vector<BodyValue>& args,
                                  const Attrs& attrs) {
    ASSIGN_OR_RETURN(const OpDef* def, catalogue_.Find(op, 0));
    ASSIGN_OR_RETURN(std::vector<Value> results, Node(*def, args, attrs));
    if (results.empty()) return env_.Fail(op, " has no result");
    return BodyValue{BodyValue::kValue, results[0], 0};
  }

  absl::StatusOr<std::vector<Value>> Call(const Expr& e) {
    std::vector<BodyValue> args;
    for (const Expr& part : e.parts) {
      if (part.kind == Expr::kSplice) {
        ASSIGN_OR_RETURN(std::vector<Value> all, Many(part.parts[0]));
        for (Value v : all) args.push_back({BodyValue::kValue, v, 0});
        continue;
      }
      ASSIGN_OR_RETURN(BodyValue v, One(part));
      args.push_back(v);
    }
    ASSIGN_OR_RETURN(const OpDef* def, catalogue_.Find(e.text, 0));
    ASSIGN_OR_RETURN(Attrs attrs, CallAttrs(*def, e));
    return Node(*def, args, attrs);
  }

  absl::StatusOr<Attrs> CallAttrs(const OpDef& def, const Expr& e) {
    Attrs out;
    for (const auto& [name, expr] : e.attrs) {
      int32_t wanted = KEEL_ATTR_NONE;
      bool word = false;
      for (const opset::AttrDef& a : def.attrs) {
        if (a.name != name) continue;
        wanted = opset::KindOf(a.type);
        word = a.type == opset::AttrDef::kEnum;
      }
      Val v;
      if (word && expr.kind == Expr::kName && expr.ref == Expr::kNothing) {
        v.kind = Val::kStr;
        v.s = expr.text;
      } else {
        RETURN_IF_ERROR(opset::Eval(expr, env_, &v));
      }
      out.push_back({name, ToAttr(v, OwnKind(v, wanted))});
    }
    std::sort(out.begin(), out.end(), [](const Attr& a, const Attr& b) { return a.name < b.name; });
    return out;
  }

  // Literals first become constants of the dtype that the op gives them.
  absl::StatusOr<std::vector<Value>> Node(const OpDef& def, const std::vector<BodyValue>& args,
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

  absl::Status Literals(const OpDef& def, const std::vector<BodyValue>& args, const Attrs& attrs,
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
        case BodyValue::kNothing:
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

  const Catalogue& catalogue_;
  Env& env_;
  BodySink& sink_;
  HashMap<std::string, BodyValue> locals_;
  std::vector<Value> variadic_;
};

}  // namespace

absl::StatusOr<std::vector<BodySink::Value>> ExpandBody(const Catalogue& catalogue, const OpDef& def,
                                                        std::span<const BodySink::Value> in,
                                                        const Attrs& given, DimTable& dims, BodySink& sink) {
  if (def.body.empty()) return Invalid(def.name, " has no body in other ops");
  std::vector<Operand> operands(in.size());
  for (size_t i = 0; i < in.size(); i++) {
    if (in[i] == BodySink::kNone)
      operands[i].kind = Operand::kAbsent;
    else
      operands[i].type = sink.Type(in[i]);
  }
  Env env(def, dims);
  env.operands = operands;
  Inferred inferred;
  RETURN_IF_ERROR(opset::InferInto(env, given, &inferred));
  return Expander(catalogue, env, sink).Run(in);
}

}  // namespace keel
