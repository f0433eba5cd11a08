// rules.h: passes that are written as text. A rule has a pattern of nodes, conditions on what it found, and
// what takes its place, all in the language of the catalogue (kernel/opset); README.md says how. So a rule is
// an OpDef: `match` is its pattern, its operands are the values that this names (the first is the whole), its
// slots the attributes, its checks the conditions, its body what is built.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/opset/def.h"
#include "kernel/plugin/host.h"

namespace keel {
namespace rules {

struct RulePass {
  std::string name, about, after, before, device;  // device "": any, else its kind
  std::vector<std::unique_ptr<OpDef>> rules;
  // Sorted by the op of the pattern's outermost node; rules of one op as in the text.
  std::vector<std::pair<const OpDef*, const OpDef*>> by_op;
};

// run.cc: applies the rules to all nodes in program order, again and again until none applies.
absl::Status Run(const RulePass&, keel_edit*);

enum class Outcome : uint8_t { kNone, kEdited, kStop };  // stop: no more edits are allowed
// match.cc: tries a rule at a node.
absl::StatusOr<Outcome> Apply(const OpDef& rule, keel_edit*, NodeId);
std::string_view OpNamed(const opset::Expr&);  // by a part of a pattern; "" if it is no op

}  // namespace rules

// read.cc: a file of rules as a plugin without a name. An error tells the place.
absl::StatusOr<std::unique_ptr<Plugin>> ReadRules(std::string_view text, const std::string& path,
                                                  const Catalogue&);

}  // namespace keel
