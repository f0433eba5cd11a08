// control.cc: types of the control ops. kRules has one row per rule named by `out y...: by RULE`: the types
// of the bodies' parameters and of the results.

#include <algorithm>

#include "kernel/language/opset/infer_internal.h"

namespace keel::opset {

struct NamedBody {
  std::string label;  // "then", "branches[2]"
  GraphTypes types;
};
using Types = std::vector<TensorType>;

struct ControlRule {
  std::string_view name;
  absl::Status (*params)(Env&, const Types& operands, Types* params);
  absl::Status (*results)(Env&, const Types& operands, const std::vector<NamedBody>&, Types* out);
};

namespace {

const Val& AttrNamed(const Env& env, std::string_view name) {
  for (const AttrDef& a : env.def.attrs)
    if (a.name == name) return env.slots[a.slot];
  static const Val none;
  return none;
}

Val& AttrNamed(Env& env, std::string_view name) {
  return const_cast<Val&>(AttrNamed(static_cast<const Env&>(env), name));
}

std::string Describe(const NamedBody& body) {
  return body.types.name.empty() ? body.label : absl::StrCat(body.label, " (@", body.types.name, ")");
}

absl::Status WrongResult(const Env& env, const NamedBody& body, size_t i, std::string_view wanted_by,
                         const TensorType& wanted) {
  return env.Fail("result ", i, " of ", Describe(body), " is ", keel::Print(body.types.results[i], env.dims),
                  " but ", wanted_by, " is ", keel::Print(wanted, env.dims));
}

absl::Status CheckCount(const Env& env, std::string_view attr, int64_t n, size_t limit) {
  if (n >= 0 && static_cast<uint64_t>(n) <= limit) return absl::OkStatus();
  return env.Fail("attribute ", attr, " is ", n, " but must be from 0 to ", limit,
                  ", the number of remaining operands");
}

// ---- cond and switch

absl::Status BranchParams(Env&, const Types& operands, Types* params) {
  params->assign(operands.begin() + 1, operands.end());
  return absl::OkStatus();
}

absl::Status BranchResults(Env& env, const Types&, const std::vector<NamedBody>& bodies, Types* out) {
  if (bodies.empty()) return env.Fail("attribute branches is empty");
  const NamedBody& first = bodies[0];
  for (const NamedBody& body : bodies) {
    if (body.types.results.size() != first.types.results.size())
      return env.Fail(Describe(body), " returns ", body.types.results.size(), " results but ",
                      Describe(first), " returns ", first.types.results.size());
    for (size_t i = 0; i < first.types.results.size(); i++)
      if (!(body.types.results[i] == first.types.results[i]))
        return WrongResult(env, body, i, absl::StrCat("that of ", Describe(first)), first.types.results[i]);
  }
  *out = first.types.results;
  return absl::OkStatus();
}

// ---- while

absl::Status WhileParams(Env& env, const Types& operands, Types* params) {
  RETURN_IF_ERROR(CheckCount(env, "carry", AttrNamed(env, "carry").i, operands.size()));
  *params = operands;
  return absl::OkStatus();
}

// The first results of a body must have the types of the carried operands.
absl::Status CheckCarry(const Env& env, const NamedBody& body, const Types& operands, size_t carry) {
  if (body.types.results.size() < carry)
    return env.Fail(Describe(body), " returns ", body.types.results.size(), " results but carry is ", carry);
  for (size_t i = 0; i < carry; i++)
    if (!(body.types.results[i] == operands[i]))
      return WrongResult(env, body, i, absl::StrCat("the carried operand ", env.OperandName(i)), operands[i]);
  return absl::OkStatus();
}

absl::Status WhileResults(Env& env, const Types& operands, const std::vector<NamedBody>& bodies, Types* out) {
  const NamedBody &test = bodies[0], &body = bodies[1];
  auto carry = static_cast<size_t>(AttrNamed(env, "carry").i);
  if (test.types.results.size() != 1 || !(test.types.results[0] == TensorType{DType::kBool, {}}))
    return env.Fail(Describe(test), " must return one bool[], but returns ",
                    test.types.results.size() == 1 ? keel::Print(test.types.results[0], env.dims)
                                                   : absl::StrCat(test.types.results.size(), " results"));
  RETURN_IF_ERROR(CheckCarry(env, body, operands, carry));
  if (body.types.results.size() != carry)
    return env.Fail(Describe(body), " returns ", body.types.results.size(), " results but carry is ", carry);
  out->assign(operands.begin(), operands.begin() + static_cast<ptrdiff_t>(carry));
  return absl::OkStatus();
}

// ---- scan

// The number of iterations: the first dim of the scanned operands, or `length`.
absl::Status SettleLength(Env& env, const Types& operands, size_t first) {
  for (size_t i = first; i < operands.size(); i++)
    if (IsPacked(operands[i].dtype))
      return env.Fail(env.OperandName(i), " is ", Name(operands[i].dtype),
                      ", whose elements are packed: an entry may begin within a byte; cast it first");
  int64_t& length = AttrNamed(env, "length").i;
  bool given = length != -1;
  if (given && !IsSymbolic(length) && (length < 0 || length > kMaxDim))
    return env.Fail("attribute length is ", length, ", which is not in [0, 2^40]");
  for (size_t i = first; i < operands.size(); i++) {
    if (operands[i].dims.empty()) return env.Fail(env.OperandName(i), " has no dim to scan over");
    if (!given && i == first) length = operands[i].dims[0];
    if (operands[i].dims[0] != length)
      return env.Fail(env.OperandName(i), " has ", env.Print(operands[i].dims[0]), " entries but ",
                      given ? std::string("length is ") : env.OperandName(first) + " has ",
                      env.Print(length));
  }
  if (length == -1) return env.Fail("there is no operand to scan over; set the attribute length");
  return absl::OkStatus();
}

absl::Status ScanParams(Env& env, const Types& all, Types* params) {
  Types operands = all;
  if (AttrNamed(env, "counted").i) {
    if (all.empty() || !(all.back() == TensorType{DType::kI64, {}}))
      return env.Fail("counted, but the last operand is not an i64[], the number of entries to run");
    operands.pop_back();
  }
  int64_t carry = AttrNamed(env, "carry").i, invariants = AttrNamed(env, "invariants").i;
  RETURN_IF_ERROR(CheckCount(env, "carry", carry, operands.size()));
  auto first = static_cast<size_t>(carry);
  RETURN_IF_ERROR(CheckCount(env, "invariants", invariants, operands.size() - first));
  first += static_cast<size_t>(invariants);
  RETURN_IF_ERROR(SettleLength(env, operands, first));
  *params = operands;
  for (size_t i = first; i < params->size(); i++) (*params)[i].dims.erase((*params)[i].dims.begin());
  return absl::OkStatus();
}

absl::Status ScanResults(Env& env, const Types& operands, const std::vector<NamedBody>& bodies, Types* out) {
  auto carry = static_cast<size_t>(AttrNamed(env, "carry").i);
  RETURN_IF_ERROR(CheckCarry(env, bodies[0], operands, carry));
  *out = bodies[0].types.results;
  for (size_t i = carry; i < out->size(); i++) {
    Dims& dims = (*out)[i].dims;
    if (IsPacked((*out)[i].dtype))
      return env.Fail("result ", i, " of ", Describe(bodies[0]), " is ", Name((*out)[i].dtype),
                      ", whose elements are packed: it cannot be stacked; cast it to i8 or u8 in the body");
    if (dims.size() == KEEL_MAX_RANK)
      return env.Fail("result ", i, " of ", Describe(bodies[0]), " has ", dims.size(),
                      " dims: stacked it would have more than ", KEEL_MAX_RANK);
    dims.insert(dims.begin(), AttrNamed(env, "length").i);
  }
  return absl::OkStatus();
}

constexpr ControlRule kRules[] = {{"cond", BranchParams, BranchResults},
                                  {"switch", BranchParams, BranchResults},
                                  {"while", WhileParams, WhileResults},
                                  {"scan", ScanParams, ScanResults}};

absl::StatusOr<std::vector<NamedBody>> BodiesOf(const Env& env, const GraphTypesOf& graphs) {
  std::vector<NamedBody> bodies;
  for (const AttrDef& a : env.def.attrs) {
    const Val& v = env.slots[a.slot];
    if (a.type == AttrDef::kGraph) {
      ASSIGN_OR_RETURN(GraphTypes types, graphs(v.i));
      bodies.push_back({a.name, std::move(types)});
    }
    for (size_t i = 0; a.type == AttrDef::kGraphList && i < v.list.size(); i++) {
      ASSIGN_OR_RETURN(GraphTypes types, graphs(v.list[i]));
      bodies.push_back({absl::StrCat(a.name, "[", i, "]"), std::move(types)});
    }
  }
  return bodies;
}

// A literal has the dtype of the body's parameter that it becomes.
Types OperandTypes(const Env& env, const std::vector<DType>& dtypes) {
  Types types;
  for (size_t i = 0; i < env.operands.size(); i++)
    types.push_back(env.operands[i].kind == Operand::kTyped ? env.operands[i].type
                                                            : TensorType{dtypes[i], {}});
  return types;
}

absl::Status CheckParams(const Env& env, const Types& given, const NamedBody& body) {
  if (body.types.params.size() != given.size())
    return env.Fail(Describe(body), " takes ", body.types.params.size(), " operands but gets ", given.size());
  for (size_t i = 0; i < given.size(); i++)
    if (!(given[i] == body.types.params[i]))
      return env.Fail("parameter ", i, " of ", Describe(body), " is ",
                      keel::Print(body.types.params[i], env.dims), " but its operand is ",
                      keel::Print(given[i], env.dims));
  return absl::OkStatus();
}

}  // namespace

const ControlRule* FindControlRule(std::string_view name) {
  for (const ControlRule& rule : kRules)
    if (rule.name == name) return &rule;
  return nullptr;
}

absl::Status InferControl(Env& env, const GraphTypesOf* graphs, Inferred* out) {
  if (!graphs) return env.Fail("refers to a graph, which only nodes of a module may do");
  ASSIGN_OR_RETURN(std::vector<NamedBody> bodies, BodiesOf(env, *graphs));
  size_t first = env.def.required_operands;
  for (size_t i = first; i < env.operands.size() && !bodies.empty(); i++)
    if (env.operands[i].kind != Operand::kTyped && i - first < bodies[0].types.params.size() &&
        bodies[0].types.params[i - first].dims.empty())
      out->operand_dtypes[i] = bodies[0].types.params[i - first].dtype;
  Types operands = OperandTypes(env, out->operand_dtypes), given;
  RETURN_IF_ERROR(env.def.control->params(env, operands, &given));
  for (const NamedBody& body : bodies) RETURN_IF_ERROR(CheckParams(env, given, body));
  return env.def.control->results(env, operands, bodies, &out->results);
}

}  // namespace keel::opset

namespace keel {

absl::StatusOr<std::vector<TensorType>> BodyParams(const OpDef& def, std::span<const Operand> operands,
                                                   const Attrs& given, DimTable& dims) {
  opset::Env env(def, dims);
  env.operands = operands;
  std::vector<Inferred::Check> checks;
  env.checks = &checks;
  Attrs all = given;
  for (const opset::AttrDef& a : def.attrs) {  // graphs are not used
    AttrValue none;
    none.kind = opset::KindOf(a.type);
    bool graph = none.kind == KEEL_ATTR_GRAPH || none.kind == KEEL_ATTR_GRAPHS;
    if (graph && std::none_of(all.begin(), all.end(), [&](const Attr& g) { return g.name == a.name; }))
      all.push_back({a.name, none});
  }
  RETURN_IF_ERROR(opset::BindAttrs(env, all));
  RETURN_IF_ERROR(opset::MatchOperands(env));
  std::vector<DType> dtypes;
  RETURN_IF_ERROR(opset::MatchWeak(env, &dtypes));
  opset::Types types;
  RETURN_IF_ERROR(def.control->params(env, opset::OperandTypes(env, dtypes), &types));
  return types;
}

}  // namespace keel
