// captures.cc: inputs of a function other than its arguments.
//
// A trace contains captured arrays and numbers of the host language; Keel sees such a number only as a
// constant. Therefore a change is detected by retracing and comparing the two modules.
#include <cstring>

#include "absl/strings/str_split.h"

#include "kernel/base/json.h"
#include "kernel/program/trace/function.h"

namespace keel {
namespace {

constexpr uint64_t kShownBytes = 256;  // of a constant's text; Compare also compares the bytes

// Without variables: their text contains their current elements.
std::vector<std::string> LinesOf(const Module& module) {
  std::vector<std::string> lines;
  for (std::string_view line : absl::StrSplit(PrintText(module, kShownBytes), '\n'))
    if (!line.starts_with("var ")) lines.emplace_back(line);
  return lines;
}

absl::Status Changed(const Graph& graph, std::string_view was, std::string_view now) {
  return Annotate(
      Error(absl::StatusCode::kFailedPrecondition, "the captures of function \"", graph.name,
            "\" changed since it was traced; its graph had\n  ", was, "\nand would have now\n  ", now),
      kErrorHint, "pass the changing value as an argument, or create a new function for the new value");
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

// Without scalars: literals of the program would be listed, too.
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
