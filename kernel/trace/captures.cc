// captures.cc: what the code of a function takes from outside of its arguments.
//
// A trace keeps what it saw: arrays that it captured, and numbers of the host language, of which Keel sees no
// more than the constants that they became. So whether they changed is found by tracing once more and
// comparing the two modules.
#include <cstring>

#include "absl/strings/str_split.h"

#include "kernel/base/json.h"
#include "kernel/trace/function.h"

namespace keel {
namespace {

constexpr uint64_t kShownBytes = 256;  // of a constant: longer ones are compared by their bytes alone

// Variables are left out: their elements are those of now.
std::vector<std::string> LinesOf(const Module& module) {
  std::vector<std::string> lines;
  for (std::string_view line : absl::StrSplit(PrintText(module, kShownBytes), '\n'))
    if (!line.starts_with("var ")) lines.emplace_back(line);
  return lines;
}

absl::Status Changed(const Graph& graph, std::string_view was, std::string_view now) {
  return Annotate(
      Error(absl::StatusCode::kFailedPrecondition, "what function \"", graph.name,
            "\" takes from outside of its arguments changed since it was traced; its graph had\n  ", was,
            "\nand would have now\n  ", now),
      kErrorHint, "pass what changes as an argument, or make a new function for the new value");
}

absl::Status Compare(const Concrete& before, const Concrete& after) {
  std::vector<std::string> was = LinesOf(*before.module), now = LinesOf(*after.module);
  size_t lines = std::max(was.size(), now.size());
  was.resize(lines), now.resize(lines);
  for (size_t i = 0; i < lines; i++)
    if (was[i] != now[i]) return Changed(*before.graph, was[i], now[i]);
  for (size_t c = 0; c < before.module->constants.size(); c++) {
    const Constant &a = before.module->constants[c], &b = after.module->constants[c];
    if (a.data != b.data && std::memcmp(a.data, b.data, a.bytes) != 0)
      return Changed(*before.graph, a.name + " with other elements", b.name);
  }
  return absl::OkStatus();
}

}  // namespace

// Scalars are left out, for literals are among them.
void ReportCaptures(const Concrete& concrete, Json* json) {
  json->Key("variables").BeginArray();
  for (const ModuleVariable& variable : concrete.module->variables) json->String(variable.name);
  json->EndArray();
  json->Key("captures").BeginArray();
  for (const TraceLink& link : concrete.links)
    if (link.array && link.array->view.ndim)
      json->String(Print(concrete.graph->values[link.value].type, concrete.module->dims));
  json->EndArray();
}

absl::Status Function::CheckCaptures(const Concrete& concrete, const Arguments& arguments) {
  std::lock_guard tracing(tracing_);
  ASSIGN_OR_RETURN(std::shared_ptr<Concrete> again, Write(arguments, concrete.sizes, concrete.declared));
  return Compare(concrete, *again);
}

}  // namespace keel
