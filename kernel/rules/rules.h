// rules.h: passes that are written as text. A rule has a pattern of nodes, conditions on what it found, and
// what takes its place; README.md has the language, which is that of the catalogue (kernel/opset) but for the
// pattern. So what a rule knows of names, conditions and bodies is an OpDef: its operands are the values that
// the pattern names, its slots the attributes, its checks the conditions, its body what is built.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/base/hash.h"
#include "kernel/opset/def.h"
#include "kernel/plugin/host.h"

namespace keel {
namespace rules {

struct Pattern {  // what a value must be
  enum Kind : uint8_t { kAny, kNone, kNumber, kCall } kind = kAny;
  bool commutes = false;
  int16_t name = -1;  // the operand of Rule::def that it binds; -1: none
  double number = 0;
  const OpDef* op = nullptr;
  std::vector<Pattern> in;
  std::vector<std::pair<std::string, uint16_t>> attrs;  // attribute -> slot of Rule::def
};

struct Rule {
  OpDef def;  // operand 0 is what the rule replaces: `result`
  Pattern pattern;
  bool supported = false;  // only if the device has an impl for the node that is built last
};

struct RulePass {
  std::string name, about, after, before, device;  // device "": any, else its kind
  std::deque<Rule> rules;
  HashMap<const OpDef*, std::vector<const Rule*>> by_op;  // of the pattern's outermost node
};

inline constexpr size_t kMostCommuting = 8;  // nodes in a pattern: each way is tried

// run.cc: applies the rules to all nodes in program order, again and again until none applies.
absl::Status Run(const RulePass&, keel_edit*);

enum class Outcome : uint8_t { kNone, kEdited, kStop };  // stop: no more edits are allowed
// match.cc: tries a rule at a node.
absl::StatusOr<Outcome> Apply(const Rule&, keel_edit*, NodeId);

}  // namespace rules

// read.cc: a file of rules as a plugin without a name. An error tells the place.
absl::StatusOr<std::unique_ptr<Plugin>> ReadRules(std::string_view text, const std::string& path,
                                                  const Catalogue&);

}  // namespace keel
