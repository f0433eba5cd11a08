// rules.h: rewrite passes written as text. A rule has a pattern of nodes, conditions, and a replacement, all
// in the op language (docs/howto/pass.md). It is stored as an OpDef: `match` is the pattern,
// the operands are the values that it names (the first is the whole pattern), the slots are attributes, the
// checks are conditions, the body is the replacement.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/language/opset/def.h"
#include "kernel/runtime/plugin/host.h"

namespace keel {
namespace rules {

struct RulePass {
  std::string name, about, after, before, device;  // "": any device; else its kind
  std::vector<std::unique_ptr<OpDef>> rules;
  // Sorted by the op of the pattern's root; rules for the same op in text order.
  std::vector<std::pair<const OpDef*, const OpDef*>> by_op;
};

// run.cc: applies the rules to all nodes in program order, repeatedly until none applies.
absl::Status Run(const RulePass&, keel_edit*);

enum class Outcome : uint8_t { kNone, kEdited, kStop };  // kStop: no more edits are allowed
// match.cc: tries a rule at a node.
absl::StatusOr<Outcome> Apply(const OpDef& rule, keel_edit*, NodeId);
std::string_view PatternOp(const opset::Expr&);  // the op of a pattern expression, or ""

}  // namespace rules

// read.cc: parses a rule file as an unnamed plugin. Errors include the position.
absl::StatusOr<std::unique_ptr<Plugin>> ReadRules(std::string_view text, const std::string& path,
                                                  const Catalogue&);

}  // namespace keel
