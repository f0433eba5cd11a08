#include "kernel/language/graph/signature.h"

#include <algorithm>
#include <vector>

namespace keel {
namespace {

std::string DefaultHead(std::string_view name, const Graph& g) {
  std::string params;
  for (ValueId v : g.params) absl::StrAppend(&params, params.empty() ? "" : ", ", g.values[v].name);
  return absl::StrCat(name, "(", params, ")");
}

void Add(std::string* out, std::string_view title, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  absl::StrAppend(out, "  ", title, ":\n");
  for (const std::string& line : lines) absl::StrAppend(out, "    ", line, "\n");
}

std::vector<std::string> CaptureLines(const Graph& g) {
  std::vector<uint32_t> numbers = g.effects.reads;
  numbers.insert(numbers.end(), g.effects.writes.begin(), g.effects.writes.end());
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::vector<std::string> lines;
  for (uint32_t number : numbers) {
    const ModuleVariable& v = g.module->variables[number];
    lines.push_back(absl::StrCat(v.name, ": variable of ", PrintSpec(v.type, g.module->dims)));
  }
  return lines;
}

}  // namespace

std::string PrintSpec(const TensorType& type, const DimTable& dims) {
  constexpr std::string_view kStems[] = {"none", "bool", "int", "uint", "float"};
  const DTypeInfo& info = Info(type.dtype);
  std::string out(info.name);
  if (info.kind != DKind::kStorage)
    out = absl::StrCat(type.dtype == DType::kBF16 ? "b" : "", kStems[static_cast<int>(info.kind)]);
  if (info.kind != DKind::kStorage && info.kind != DKind::kBool) absl::StrAppend(&out, info.size * 8);
  absl::StrAppend(&out, " Tensor, shape=(");
  for (size_t d = 0; d < type.dims.size(); d++)
    absl::StrAppend(&out, d ? ", " : "",
                    IsSymbolic(type.dims[d]) ? dims.Print(type.dims[d]) : absl::StrCat(type.dims[d]));
  return absl::StrCat(out, type.dims.size() == 1 ? ",)" : ")");
}

std::string PrintSignature(const Graph& g, std::string head) {
  std::vector<std::string> args, returns;
  const DimTable& dims = g.module->dims;
  for (ValueId v : g.params)
    args.push_back(absl::StrCat(g.values[v].name, ": ", PrintSpec(g.values[v].type, dims)));
  for (size_t i = 0; i < g.results.size(); i++)
    returns.push_back(absl::StrCat(g.result_names[i], g.result_names[i].empty() ? "" : ": ",
                                   PrintSpec(g.values[g.results[i]].type, dims)));
  std::string out = (head.empty() ? DefaultHead(g.name, g) : std::move(head)) + "\n";
  Add(&out, "Args", args);
  Add(&out, "Returns", returns);
  Add(&out, "Captures", CaptureLines(g));
  return out;
}

std::string PrintSignatures(const Module& m) {
  std::string out;
  for (const Entry& e : m.entries) {
    const Graph& g = *m.graphs[e.graph];
    std::string head = DefaultHead(e.name, g);
    for (const auto& [key, value] : m.metadata)
      if (key == SignatureKey(e.name)) head = value;
    absl::StrAppend(&out, out.empty() ? "" : "\n", PrintSignature(g, std::move(head)));
  }
  return out;
}

std::string SignatureKey(std::string_view entry) { return absl::StrCat("signature/", entry); }

}  // namespace keel
