// operators.cc: the list of operators for readers: with the first opset that is supported, or why there is
// none.
#include "plugins/onnx/import/importer.h"

namespace onnx_import {
namespace {

struct Reason {
  Text domain, op, reason;
};
constexpr Reason kReasons[] = {
    {"", "ImageDecoder", "images"},
};

}  // namespace

Text Importer::reason_against(Text domain, Text op) {
  for (const Reason& r : kReasons)
    if (r.op == op && r.domain == domain) return r.reason;
  return "";
}

// Lines DOMAIN <tab> OPERATOR <tab> OPSET <tab> REASON; without a domain for ONNX's own, without an opset
// where a reason says that the operator is not supported.
std::string Importer::operator_list() {
  std::map<std::pair<Text, Text>, int> first;
  const auto add = [&](Text domain, Text op, int since) {
    const auto [at, added] = first.emplace(std::pair(domain, op), since);
    if (!added) at->second = std::min(at->second, since);
  };
  for (const auto& [name, rule] : rules_by_name()) {
    const size_t dot = name.rfind('.');
    dot == Text::npos ? add("", name, rule->since)
                      : add(name.substr(0, dot), name.substr(dot + 1), rule->since);
  }
  for (const Control& control : controls()) add(control.domain, control.op, control.since);
  std::string lines;
  for (const auto& [name, since] : first) lines += cat(name.first, "\t", name.second, "\t", since, "\t\n");
  for (const Reason& r : kReasons) lines += cat(r.domain, "\t", r.op, "\t\t", r.reason, "\n");
  return lines;
}

}  // namespace onnx_import
