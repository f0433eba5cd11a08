// node_facts.cc: see node_facts.h.
#include "kernel/runtime/plan/node_facts.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernel/base/status.h"

namespace keel {
namespace {

bool IsIdentityPerm(const Attrs& attrs) {
  for (const Attr& attr : attrs)
    if (attr.name == "perm") return std::is_sorted(attr.value.list.begin(), attr.value.list.end());
  return false;
}

}  // namespace

bool IsAlias(const OpDef& op, std::span<const Operand> in, const Inferred& inferred) {
  if (Has(op, Trait::kAlias)) return true;
  if (Has(op, Trait::kNoopIfSame)) return in[0].type == inferred.results[0];
  return Has(op, Trait::kNoopIfIdentity) && in.size() == 1 && IsIdentityPerm(inferred.attrs);
}

std::optional<Dim> KnownSize(const OpDef& op, const Attrs& attrs) {
  if (OpName(op) != "dim") return std::nullopt;
  for (const Attr& attr : attrs)
    if (attr.name == "of" && !IsSymbolic(attr.value.i)) return attr.value.i;
  return std::nullopt;
}

bool HasEffects(const Module& module, const Attrs& attrs) {
  for (uint32_t body : BodiesOf(attrs))
    if (module.graphs[body]->effects.Any()) return true;
  return false;
}

std::string DescribeTypes(const Inferred& inferred, std::span<const DType> in) {
  std::vector<std::string> names;
  for (const auto& [variable, dtype] : inferred.types)
    names.push_back(absl::StrCat(variable, "=", std::string(Name(dtype))));
  if (names.empty())
    for (DType d : in) names.emplace_back(Name(d));
  return absl::StrJoin(names, " ");
}

absl::Status NotFed(const Graph& graph, ValueId v) {
  return Annotate(Invalid("You must feed a value for parameter \"", graph.ValueName(v), "\", which is ",
                          Print(graph.values[v].type, graph.module->dims)),
                  kErrorHint, "feed it, or fetch only values that do not depend on it");
}

}  // namespace keel
