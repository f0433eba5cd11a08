// infer.cc: the types of a node's results, from the op's definition and the operands' types.

#include <algorithm>

#include "kernel/language/opset/infer_internal.h"
#include "kernel/language/opset/require.h"

namespace keel {

using opset::Env;
using opset::Item;
using opset::List;
using opset::Pattern;
using opset::ResultDef;
using opset::Val;

std::string Print(const TensorType& type, const DimTable& dims) {
  std::string out(Name(type.dtype));
  out += "[";
  for (size_t i = 0; i < type.dims.size(); i++)
    absl::StrAppend(&out, i ? ", " : "", dims.Print(type.dims[i]));
  return out + "]";
}

namespace opset {

namespace {

// Result dims must be in range; a check is recorded if that depends on symbols.
absl::Status CheckResultDim(Env& env, const ResultDef& r, Dim d) {
  if (!IsSymbolic(d)) {
    if (d >= 0 && d <= kMaxDim) return absl::OkStatus();
    return env.Fail("result ", r.name, " would have dim ", d, ", which is not in [0, 2^40]");
  }
  if (env.dims.NeverNegative(d)) return absl::OkStatus();
  if (env.dims.Compare(d, 0) == Order::kLess)
    return env.Fail("result ", r.name, " would have the negative dim ", env.Print(d));
  env.AddCheck(0, d, false,
               absl::StrCat("dim ", env.Print(d), " of result ", r.name, " must not be negative"));
  return absl::OkStatus();
}

absl::Status ResultDims(Env& env, const ResultDef& r, Dims* out) {
  out->clear();
  for (const Item& item : r.pattern.items) {
    const Val* bound = item.slot != kNoSlot ? &env.slots[item.slot] : nullptr;
    if (item.kind == Item::kNumber) {
      out->push_back(item.number);
    } else if (item.kind == Item::kGroup && bound && bound->kind == Val::kList) {
      out->insert(out->end(), bound->list.begin(), bound->list.end());
    } else if (item.kind == Item::kName || item.kind == Item::kExpr) {
      int64_t d = 0;
      RETURN_IF_ERROR(EvalInt(item.expr, env, &d));
      out->push_back(d);
    } else {
      List list;
      RETURN_IF_ERROR(EvalList(item.expr, env, &list));
      if (list.size() > KEEL_MAX_RANK)
        return env.Fail("result ", r.name, " would have ", list.size(), " dims, more than ", KEEL_MAX_RANK);
      out->insert(out->end(), list.begin(), list.end());
    }
    if (out->size() > KEEL_MAX_RANK)
      return env.Fail("result ", r.name, " would have more than ", KEEL_MAX_RANK, " dims");
  }
  for (Dim d : *out) RETURN_IF_ERROR(CheckResultDim(env, r, d));
  return absl::OkStatus();
}

absl::Status Result(Env& env, const ResultDef& r, TensorType* out) {
  const DTypeRef& ref = r.pattern.dtype;
  out->dtype = ref.kind == DTypeRef::kFixed      ? ref.fixed
               : ref.kind == DTypeRef::kVariable ? env.types[ref.index]
                                                 : static_cast<DType>(env.slots[ref.index].i);
  if (out->dtype == DType::kNone) return env.Fail("the dtype of result ", r.name, " is not determined");
  return ResultDims(env, r, &out->dims);
}

absl::Status CheckTypes(const Env& env, std::string_view what, std::span<const TensorType> got,
                        std::span<const TensorType> wanted) {
  bool same = std::equal(got.begin(), got.end(), wanted.begin(), wanted.end());
  auto list = [&](std::span<const TensorType> types) {
    std::string out;
    for (const TensorType& t : types)
      absl::StrAppend(&out, out.empty() ? "" : ", ", keel::Print(t, env.dims));
    return out;
  };
  return same ? absl::OkStatus() : env.Fail(what, " are (", list(got), ") but must be (", list(wanted), ")");
}

// Checks the gradient graph of a call (control.ops).
absl::Status CheckVjp(const Env& env, const GraphTypes& body, const GraphTypes& vjp) {
  std::vector<TensorType> params = body.params, results;
  params.insert(params.end(), body.results.begin(), body.results.end());
  for (const TensorType& t : body.results)
    if (IsFloating(t.dtype)) params.push_back(t);
  for (const TensorType& t : body.params)
    if (IsFloating(t.dtype)) results.push_back(t);
  RETURN_IF_ERROR(CheckTypes(env, "the parameters of vjp", vjp.params, params));
  return CheckTypes(env, "the results of vjp", vjp.results, results);
}

// The operands of an op typed by a graph must have exactly the types of the graph's parameters.
absl::Status MatchGraph(Env& env, const GraphTypesOf* graphs, Inferred* out) {
  if (!graphs) return env.Fail("refers to a graph, which only nodes of a module may do");
  ASSIGN_OR_RETURN(GraphTypes body, (*graphs)(env.slots[env.def.typed_by].i));
  if (env.operands.size() != body.params.size())
    return env.Fail("its body takes ", body.params.size(), " operands, got ", env.operands.size());
  for (size_t i = 0; i < body.params.size(); i++) {
    const Operand& o = env.operands[i];
    if (o.kind == Operand::kTyped && !(o.type == body.params[i]))
      return env.Fail(env.OperandName(i), " must be ", keel::Print(body.params[i], env.dims),
                      ", the type of parameter ", i, " of its body");
    if (o.kind != Operand::kTyped && !body.params[i].dims.empty())
      return env.Fail(env.OperandName(i), " is a literal but its body takes ",
                      keel::Print(body.params[i], env.dims));
    out->operand_dtypes[i] = body.params[i].dtype;
  }
  for (const AttrDef& a : env.def.attrs) {
    if (a.slot == env.def.typed_by || env.slots[a.slot].i < 0) continue;
    ASSIGN_OR_RETURN(GraphTypes vjp, (*graphs)(env.slots[a.slot].i));
    RETURN_IF_ERROR(CheckVjp(env, body, vjp));
  }
  out->results = std::move(body.results);
  return absl::OkStatus();
}

absl::Status MatchVariables(Env& env, const VarTypeOf* vars) {
  for (const AttrDef& a : env.def.attrs) {
    if (a.type != AttrDef::kVar) continue;
    if (!vars) return env.Fail("refers to a variable, which only nodes of a module may do");
    ASSIGN_OR_RETURN(TensorType type, (*vars)(env.slots[a.slot].i));
    RETURN_IF_ERROR(MatchVariable(env, a, type));
  }
  return absl::OkStatus();
}

absl::Status Results(Env& env, std::vector<TensorType>* out) {
  const OpDef& def = env.def;
  if (def.results.size() != 1 || !def.results[0].variadic) {
    out->resize(def.results.size());
    for (size_t i = 0; i < def.results.size(); i++) RETURN_IF_ERROR(Result(env, def.results[i], &(*out)[i]));
    return absl::OkStatus();
  }
  List counted;
  RETURN_IF_ERROR(EvalList(def.results[0].count, env, &counted));
  out->resize(counted.size());
  for (size_t i = 0; i < counted.size(); i++) {
    env.each = static_cast<int64_t>(i);
    RETURN_IF_ERROR(Result(env, def.results[0], &(*out)[i]));
  }
  env.each = -1;
  return absl::OkStatus();
}

void ExportTypes(const Env& env, std::vector<std::pair<std::string, DType>>* out) {
  const OpDef& def = env.def;
  size_t count = def.types.size();
  for (const AttrDef& a : def.attrs) count += a.type == AttrDef::kDType;
  out->resize(count);
  size_t at = 0;
  auto put = [&](const std::string& name, DType d) {
    (*out)[at].first = name;
    (*out)[at++].second = d;
  };
  for (size_t i = 0; i < def.types.size(); i++) put(def.types[i].name, env.types[i]);
  for (const AttrDef& a : def.attrs)
    if (a.type == AttrDef::kDType) put(a.name, static_cast<DType>(env.slots[a.slot].i));
}

}  // namespace

absl::Status InferInto(Env& env, const Attrs& given, Inferred* out, const GraphTypesOf* graphs,
                       const VarTypeOf* vars) {
  out->checks.clear();
  env.checks = &out->checks;
  RETURN_IF_ERROR(BindAttrs(env, given));
  RETURN_IF_ERROR(MatchVariables(env, vars));
  RETURN_IF_ERROR(MatchOperands(env));
  RETURN_IF_ERROR(MatchWeak(env, &out->operand_dtypes));
  RETURN_IF_ERROR(SettleAttrs(env));
  for (const CheckDef& check : env.def.checks) RETURN_IF_ERROR(Require(check, env));
  if (env.def.control)
    RETURN_IF_ERROR(InferControl(env, graphs, out));
  else
    RETURN_IF_ERROR(env.def.typed_by == kNoSlot ? Results(env, &out->results) : MatchGraph(env, graphs, out));
  ExportAttrs(env, &out->attrs);
  ExportTypes(env, &out->types);
  return absl::OkStatus();
}

}  // namespace opset

std::vector<Operand> OperandsOf(std::span<const uint32_t> ids,
                                absl::FunctionRef<TensorType(uint32_t id)> type_of) {
  std::vector<Operand> operands(ids.size());
  for (size_t i = 0; i < ids.size(); i++) {
    if (ids[i] == kNoOperand)
      operands[i].kind = Operand::kAbsent;
    else
      operands[i].type = type_of(ids[i]);
  }
  return operands;
}

absl::Status Infer(const OpDef& def, std::span<const Operand> operands, const Attrs& given, DimTable& dims,
                   Inferred* out, const GraphTypesOf* graphs, const VarTypeOf* vars) {
  Env env(def, dims);
  env.operands = operands;
  return InferInto(env, given, out, graphs, vars);
}

}  // namespace keel
