// regex.cc: RegexFullMatch: a scan over the bytes of all strings with the table of regex.h.
#include "plugins/onnx/ops/regex.h"

#include "plugins/onnx/ops/classes.h"
#include "plugins/onnx/ops/loop.h"
#include "plugins/onnx/ops/strings.h"

namespace onnx_import {
namespace {

void regex_full_match(Call& c) {
  const Strings x(c, 0);
  const std::string pattern = c.s("pattern", ""), what = cat(c.title(), ": pattern '", pattern, "'");
  expect_text(pattern, what);
  const RegexTable table = table_of(parse_regex(pattern, what), what);
  Edit& e = c.e;
  const Term rows = x.rows(), bytes = fitted(rows, e.add(rows.dim(1), 1)).transpose({1, 0});
  const Term classes = constant_of(e, table.class_of).gather(bytes.to(KEEL_I32), 0);
  const Term next = constant_of(e, table.next);
  const auto body = [&](const Terms& carried, const Terms& invariants, const Terms& scanned) {
    const Term at = carried[0] * static_cast<double>(table.classes) + scanned[0];
    return Terms{invariants[0].gather(at, 0)};
  };
  const Term start = filled(e, KEEL_I64, RegexTable::kStart, {rows.dim(0)});
  const Term last = scan(e, {.carried = {start}, .invariants = {next}, .scanned = {classes}}, body)[0];
  c.set(0, x.spread(last == static_cast<double>(RegexTable::kMatch)).v);
}

constexpr Rule kRules[] = {
    {"RegexFullMatch", 20, regex_full_match, "pattern", 0, false, false, true},
};

}  // namespace

Rules regex_rules() { return kRules; }

}  // namespace onnx_import
