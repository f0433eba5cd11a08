// lower_checks.cc: see lower_checks.h.
#include "kernel/runtime/plan/lower_checks.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_join.h"
#include "kernel/language/dims/rule.h"
#include "kernel/language/graph/node_effects.h"
#include "kernel/runtime/plan/node_facts.h"

namespace keel {
namespace {

constexpr size_t kMaxMissingShown = 40;

// Describes the first feed with a symbol of the rule.
std::string DescribeFeed(const DimRule& rule, const Lowered& lowered) {
  std::vector<size_t> wanted;
  for (Dim d : {rule.a, rule.b}) lowered.dims.Symbols(d, &wanted);
  for (uint32_t v : lowered.feeds)
    for (Dim d : lowered.values[v].type.dims) {
      std::vector<size_t> has;
      lowered.dims.Symbols(d, &has);
      if (std::ranges::find_first_of(has, wanted) != has.end())
        return absl::StrCat(" of \"", lowered.values[v].name, "\", which is ",
                            Print(lowered.values[v].type, lowered.dims));
    }
  return "";
}

}  // namespace

void AddRules(const Graph& graph, Lowered& lowered) {
  for (const std::string& text : graph.rules) {
    absl::StatusOr<std::vector<DimRule>> rules = ParseRule(text, lowered.dims);
    if (!rules.ok()) continue;
    for (const DimRule& r : *rules)
      lowered.checks.push_back(
          {r.a, r.b, r.equal, absl::StrCat("\"", text, "\" does not hold", DescribeFeed(r, lowered))});
  }
}

absl::Status AddDeclaredType(std::string_view name, const TensorType& type, uint32_t value,
                             Lowered& lowered) {
  Dims& dims = lowered.values[value].type.dims;
  if (type.dims.size() != dims.size())
    return Internal("value \"", name, "\" has another rank in the plan than in the graph");
  for (size_t d = 0; d < dims.size(); d++) {
    if (type.dims[d] == dims[d]) continue;
    lowered.checks.push_back(
        {dims[d], type.dims[d], true,
         absl::StrCat("dim ", d, " of \"", name, "\" is declared ", lowered.dims.Print(type.dims[d]),
                      " but is ", lowered.dims.Print(dims[d]))});
  }
  return absl::OkStatus();
}

std::vector<NodeId> BodyTargets(const Graph& body, bool strict) {
  if (!strict) return MustRunNodes(body);
  std::vector<NodeId> all(body.nodes.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

absl::Status MissingImpls(const Device& device, const std::map<std::string, size_t>& missing) {
  std::vector<std::string> parts;
  for (const auto& [what, count] : missing)
    if (parts.size() < kMaxMissingShown)
      parts.push_back(absl::StrCat(what, count > 1 ? absl::StrCat(" x", count) : ""));
  return Annotate(Unimplemented("device ", device.name(), " has no impl for ", missing.size(),
                                missing.size() == 1 ? " op" : " ops", " without a body: ",
                                absl::StrJoin(parts, ", "), missing.size() > kMaxMissingShown ? ", ..." : ""),
                  kErrorHint,
                  absl::StrCat("`keel ops --device ", device.plugin().name,
                               "` lists its ops; run on another device, or name one as fallback"));
}

}  // namespace keel
