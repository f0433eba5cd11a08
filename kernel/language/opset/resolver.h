// resolver.h: replaces the names in a parsed definition by slots, and rejects invalid definitions. Members
// are in def_resolve.cc (clauses), def_resolve_values.cc (expressions and blocks) and def_resolve_rule.cc
// (the pattern of a rewrite rule).
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/language/opset/def.h"

namespace keel::opset {

class Resolver {
 public:
  explicit Resolver(OpDef* def) : def_(*def) {}
  absl::Status Run();

 private:
  absl::Status Fail(std::string_view message) const;
  absl::Status FailAt(const Expr& e, std::string_view message) const;
  uint16_t FindSlot(std::string_view name) const;
  absl::StatusOr<uint16_t> MakeSlot(std::string_view name);
  AttrDef* FindAttr(std::string_view name);

  // def_resolve.cc
  absl::Status Attributes();
  absl::Status Variables();
  absl::Status Operands();
  absl::Status OperandPattern(Pattern* p, const OperandDef& o, std::set<uint16_t>* bound);
  absl::Status Items(Pattern* p, std::string_view where, bool variadic, std::set<uint16_t>* bound);
  absl::Status ResolveDType(Pattern* p);
  absl::Status Shapes();
  absl::Status Groups();
  absl::Status Defaults();
  absl::Status Results();
  absl::Status Checks();
  absl::Status CheckAxesUsed();

  // def_resolve_values.cc
  absl::Status Static(Expr* e, bool words = false);
  bool Bind(Expr* e);
  absl::Status StaticName(Expr* e, bool words);
  absl::Status StaticCall(Expr* e);
  absl::Status Value(Expr* e);
  absl::Status ResolveBlock(Block* block, size_t returns, std::string_view what);
  absl::Status Blocks();

  // def_resolve_rule.cc
  absl::Status Rule();
  void NewOperand(std::string_view name);
  absl::Status ResolvePattern(Expr* e);
  absl::Status ResolvePatternName(Expr* e);

  OpDef& def_;
  std::vector<Expr*> attrs_;  // of a pattern
  std::set<uint16_t> bound_, used_axes_;
  std::set<std::string> locals_;
};

}  // namespace keel::opset
