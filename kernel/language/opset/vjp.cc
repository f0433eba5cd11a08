// vjp.cc: expands gradient rules (see expander.h), and finds the values that a rule reads.
//
// Expansion is lazy: an assignment is expanded when a wanted gradient reads its name.

#include <algorithm>

#include "kernel/language/opset/expander.h"

namespace keel {
namespace opset {
namespace {

using Value = BodySink::Value;

BodyValue CotangentOf(Value cotangent, Value of, BodySink& sink) {
  if (cotangent != BodySink::kNone) return BodyValue::Of(cotangent);
  return {BodyValue::kMissing, BodySink::kNone, 0, sink.Type(of)};
}

void BindResults(const OpDef& def, const VjpNode& node, Expander& expander, BodySink& sink) {
  if (def.results.size() == 1 && def.results[0].variadic) {
    std::vector<BodyValue> results, cotangents;
    for (size_t i = 0; i < node.out.size(); i++) {
      results.push_back(BodyValue::Of(node.out[i]));
      cotangents.push_back(CotangentOf(node.cotangents[i], node.out[i], sink));
    }
    expander.Bind(def.results[0].name, std::move(results));
    expander.Bind(def.vjp.cotangents[0], std::move(cotangents));
    return;
  }
  for (size_t i = 0; i < node.out.size(); i++) {
    expander.Bind(def.results[i].name, BodyValue::Of(node.out[i]));
    expander.Bind(def.vjp.cotangents[i], CotangentOf(node.cotangents[i], node.out[i], sink));
  }
}

// The gradient that a rule returns for an operand; a number denotes a tensor filled with it.
absl::StatusOr<Value> Returned(const Expr& e, const TensorType& type, Expander& expander) {
  ASSIGN_OR_RETURN(BodyValue v, expander.ValueOf(e));
  if (v.kind == BodyValue::kInt || v.kind == BodyValue::kFloat) return expander.Filled(type, v.number);
  return v.value;
}

// Collects the names that an expression reads, including those read by assignments.
class NameCollector {
 public:
  explicit NameCollector(const Block& block) : block_(block) {}

  void Read(const Expr& e) {
    if (e.kind == Expr::kName && names_.insert(e.text).second) ReadAssignments(e.text);
    for (size_t i = e.kind == Expr::kCond ? 1 : 0; i < e.parts.size(); i++) Read(e.parts[i]);
  }
  bool Has(const std::string& name) const { return names_.count(name) != 0; }

 private:
  void ReadAssignments(const std::string& name) {
    for (const Statement& s : block_)
      if (s.kind == Statement::kAssign && std::find(s.names.begin(), s.names.end(), name) != s.names.end())
        Read(s.values[0]);
  }

  const Block& block_;
  HashSet<std::string> names_;
};

}  // namespace
}  // namespace opset

Vjp VjpOf(const OpDef& def) {
  if (def.vjp.none) return Vjp::kNone;
  if (def.vjp.given) return Vjp::kRule;
  return def.body.empty() ? Vjp::kMissing : Vjp::kBody;
}

std::vector<VjpReads> VjpReadsOf(const OpDef& def) {
  std::vector<VjpReads> out(def.operands.size());
  bool body = VjpOf(def) == Vjp::kBody;
  for (size_t i = 0; i < out.size(); i++) {
    out[i].operands.assign(def.operands.size(), body);
    out[i].results.assign(def.results.size(), false);
    if (VjpOf(def) != Vjp::kRule) continue;
    const std::vector<opset::Expr>& values = def.vjp.block.back().values;
    opset::NameCollector reader(def.vjp.block);
    reader.Read(values[std::min(i, values.size() - 1)]);
    for (size_t k = 0; k < def.operands.size(); k++) out[i].operands[k] = reader.Has(def.operands[k].name);
    for (size_t k = 0; k < def.results.size(); k++) out[i].results[k] = reader.Has(def.results[k].name);
  }
  return out;
}

absl::StatusOr<std::vector<BodySink::Value>> ExpandVjp(const Catalogue& catalogue, const OpDef& def,
                                                       const VjpNode& node, const Attrs& given,
                                                       DimTable& dims, BodySink& sink) {
  using namespace opset;
  if (VjpOf(def) != Vjp::kRule) return Invalid(def.name, " has no gradient rule");
  std::vector<Operand> operands = OperandsOf(node.in, [&](BodySink::Value v) { return sink.Type(v); });
  Env env(def, dims);
  env.operands = operands;
  Inferred inferred;
  RETURN_IF_ERROR(InferInto(env, given, &inferred));
  Expander expander(catalogue, env, sink);
  expander.BindOperands(node.in);
  BindResults(def, node, expander, sink);
  ASSIGN_OR_RETURN(const Statement* result, expander.Run(def.vjp.block, true));
  std::vector<BodySink::Value> out(node.in.size(), BodySink::kNone);
  for (size_t i = 0, at = 0; i < result->values.size() && at < out.size(); i++) {
    const Expr& e = result->values[i];
    if (e.kind != Expr::kSplice) {
      if (node.wanted[at]) {
        ASSIGN_OR_RETURN(out[at], Returned(e, sink.Type(node.in[at]), expander));
      }
      at++;
      continue;
    }
    if (std::find(node.wanted.begin() + static_cast<ptrdiff_t>(at), node.wanted.end(), true) ==
        node.wanted.end())
      break;
    ASSIGN_OR_RETURN(std::vector<BodySink::Value> all, expander.ValuesOf(e.parts[0]));
    if (all.size() != out.size() - at)
      return env.Fail("its gradient rule returns ", all.size(), " values for ", out.size() - at, " operands");
    std::copy(all.begin(), all.end(), out.begin() + static_cast<ptrdiff_t>(at));
    at = out.size();
  }
  for (size_t i = 0; i < out.size(); i++)
    if (!node.wanted[i]) out[i] = BodySink::kNone;
  return out;
}

}  // namespace keel
