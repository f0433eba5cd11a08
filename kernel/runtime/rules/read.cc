// read.cc: parses rule files. opset/def_resolve.cc resolves the names.
#include <algorithm>

#include "kernel/runtime/rules/rules.h"

namespace keel {
namespace rules {
namespace {

constexpr size_t kMaxText = 1 << 20, kMaxRules = 4096, kMaxParts = 64;

// Keywords without arguments, and the members that they set.
struct Word {
  std::string_view text;
  int32_t keel_pass::*member;
  int32_t value;
};
constexpr Word kWords[] = {
    {"canon", &keel_pass::phase, KEEL_PHASE_CANON}, {"placed", &keel_pass::phase, KEEL_PHASE_PLACED},
    {"lower", &keel_pass::phase, KEEL_PHASE_LOWER}, {"exact", &keel_pass::exactness, KEEL_EXACT},
    {"close", &keel_pass::exactness, KEEL_CLOSE},   {"fast", &keel_pass::exactness, KEEL_FAST}};
// Keywords followed by names, and their members.
struct List {
  std::string_view text;
  std::string RulePass::*member;
};
constexpr List kLists[] = {
    {"after", &RulePass::after}, {"before", &RulePass::before}, {"for", &RulePass::device}};

// An expression as a block that returns it.
absl::Status ParseReturn(Lexer& lex, opset::Block* out) {
  opset::Statement s;
  s.kind = opset::Statement::kReturn;
  ASSIGN_OR_RETURN(s.values.emplace_back(), opset::ParseExpr(lex));
  out->push_back(std::move(s));
  return absl::OkStatus();
}

// Parses a rule after its name.
absl::Status ReadRule(Lexer& lex, OpDef* rule) {
  rule->results.emplace_back().pattern.dtype_name = "f32";  // unused
  RETURN_IF_ERROR(lex.Expect("match"));
  RETURN_IF_ERROR(ParseReturn(lex, &rule->match));
  if (lex.Accept("where")) {
    do {
      if (lex.At("let") || lex.At("return")) return lex.Fail("expected NAME = value");
      ASSIGN_OR_RETURN(opset::Statement s, opset::ParseStatement(lex));
      rule->match.push_back(std::move(s));
    } while (rule->match.size() < kMaxParts && lex.Accept(","));
  }
  if (lex.Accept("when")) {
    do {
      if (lex.Accept("supported")) {
        rule->when_supported = true;
        continue;
      }
      ASSIGN_OR_RETURN(rule->checks.emplace_back().condition, opset::ParseExpr(lex));
    } while (rule->checks.size() < kMaxParts && lex.Accept(","));
  }
  RETURN_IF_ERROR(lex.Expect("build"));
  if (!lex.AtPunct("{")) return ParseReturn(lex, &rule->body);
  ASSIGN_OR_RETURN(rule->body, opset::ParseBlock(lex));
  return absl::OkStatus();
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& path, const Catalogue& ops)
      : lex_(text, path), path_(path), ops_(ops), plugin_(std::make_unique<Plugin>()) {
    plugin_->path = path;
    plugin_->about = "rules";
  }

  absl::StatusOr<std::unique_ptr<Plugin>> Read() {
    RETURN_IF_ERROR(lex_.Expect("keel"));
    RETURN_IF_ERROR(lex_.Expect("rules"));
    Token at = lex_.Peek();
    if (!lex_.Int("the version of the language, 1").ok() || at.text != "1")
      return lex_.FailAt(at, "this libkeel reads version 1 of the language");
    while (!lex_.AtEnd()) RETURN_IF_ERROR(ReadPass());
    return std::move(plugin_);
  }

 private:
  absl::Status ReadPass() {
    auto pass = std::make_shared<RulePass>();
    plugin_->rules.push_back(pass);
    Pass entry{{}, plugin_.get(), pass.get(), lex_.Accept("extend")};
    if (!entry.extends) RETURN_IF_ERROR(lex_.Expect("pass"));
    Token at = lex_.Peek();
    ASSIGN_OR_RETURN(pass->name, lex_.Name("the pass's name"));
    for (const Pass& other : plugin_->passes)
      if (pass->name == other.table.name) return lex_.FailAt(at, "this file already has this pass");
    if (lex_.Peek().kind == Token::kString) {
      ASSIGN_OR_RETURN(pass->about, lex_.String("a description of the pass"));
    }
    keel_pass& table = entry.table;
    table.phase = KEEL_PHASE_CANON;
    RETURN_IF_ERROR(ParseClauses(pass.get(), &table));
    if (entry.extends && (table.level || table.exactness || !pass->after.empty() || !pass->before.empty()))
      return lex_.FailAt(at, "the extended pass defines level, exactness and order: omit them");
    if (!table.level) table.level = table.exactness == KEEL_FAST ? 3 : 1;
    table.name = pass->name.c_str();
    table.about = pass->about.c_str();
    table.after = pass->after.c_str();
    table.before = pass->before.c_str();
    if (absl::Status status = CheckPass(table, 0); !status.ok()) return lex_.FailAt(at, status.message());
    plugin_->passes.push_back(entry);
    while (lex_.Accept("rule")) RETURN_IF_ERROR(ReadRules(pass.get()));
    if (lex_.AtEnd() || lex_.At("pass") || lex_.At("extend")) return absl::OkStatus();
    return lex_.Fail(
        "expected rule, pass or extend; or level N, exact, close, fast, canon, placed, lower, after, "
        "before, for before the rules");
  }

  absl::Status ParseClauses(RulePass* pass, keel_pass* table) {
    for (bool found = true; found;) {
      found = lex_.Accept("level");
      if (found) {
        ASSIGN_OR_RETURN(int64_t level, lex_.Int("a level"));
        table->level = level ? static_cast<int32_t>(std::clamp<int64_t>(level, -1, 999)) : -1;
      }
      for (const Word& word : kWords)
        if (lex_.Accept(word.text)) table->*word.member = word.value, found = true;
      for (const List& list : kLists)
        if (lex_.Accept(list.text)) {
          found = true;
          RETURN_IF_ERROR(ParseNames("a name", &(pass->*list.member)));
        }
    }
    return absl::OkStatus();
  }

  // One or more names, appended with blanks between.
  absl::Status ParseNames(std::string_view what, std::string* all) {
    do {
      ASSIGN_OR_RETURN(std::string_view name, lex_.Name(what));
      absl::StrAppend(all, all->empty() ? "" : " ", name);
    } while (lex_.Accept(","));
    return absl::OkStatus();
  }

  // One rule, or one per op if `for f in OP, ...` follows its name; f denotes the op.
  absl::Status ReadRules(RulePass* pass) {
    ASSIGN_OR_RETURN(std::string_view name, lex_.Name("the rule's name"));
    std::string_view alias;
    std::vector<std::string_view> ops{""};
    if (lex_.Accept("for")) {
      ASSIGN_OR_RETURN(alias, lex_.Name("a name for several ops"));
      RETURN_IF_ERROR(lex_.Expect("in"));
      ASSIGN_OR_RETURN(ops[0], lex_.Name("an op"));
      while (lex_.Accept(",")) {
        ASSIGN_OR_RETURN(ops.emplace_back(), lex_.Name("an op"));
      }
    }
    Lexer begin = lex_;
    for (std::string_view op : ops) {
      lex_ = begin;
      lex_.Rename(alias, op);
      auto& rule = pass->rules.emplace_back(std::make_unique<OpDef>());
      rule->name = name;
      rule->origin = path_;
      RETURN_IF_ERROR(ReadRule(lex_, rule.get()));
      RETURN_IF_ERROR(AddRule(pass, rule.get()));
    }
    lex_.Rename("", "");
    return pass->rules.size() <= kMaxRules ? absl::OkStatus() : lex_.Fail("too many rules for one pass");
  }

  absl::Status AddRule(RulePass* pass, OpDef* rule) {
    RETURN_IF_ERROR(opset::Resolve(rule));
    RETURN_IF_ERROR(opset::CheckCalls(ops_, *rule));
    const opset::Expr& root = rule->match[0].values[0];
    absl::StatusOr<const OpDef*> op = ops_.Find(PatternOp(root), 0);
    if (!op.ok()) return opset::FailIn(*rule, root.line, root.column, "the pattern of a rule must be an op");
    auto at = std::upper_bound(pass->by_op.begin(), pass->by_op.end(), *op,
                               [](const OpDef* a, const auto& b) { return a < b.first; });
    pass->by_op.insert(at, {*op, rule});
    return absl::OkStatus();
  }

  Lexer lex_;
  const std::string& path_;
  const Catalogue& ops_;
  std::unique_ptr<Plugin> plugin_;
};

}  // namespace

std::string_view PatternOp(const opset::Expr& e) {
  if (e.kind == opset::Expr::kBinary) return opset::Info(e.op).op;
  return e.kind == opset::Expr::kCall ? std::string_view(e.text) : e.kind == opset::Expr::kNeg ? "neg" : "";
}

}  // namespace rules

absl::StatusOr<std::unique_ptr<Plugin>> ReadRules(std::string_view text, const std::string& path,
                                                  const Catalogue& ops) {
  if (text.size() > rules::kMaxText) return Invalid("rules of more than 1 MiB");
  return rules::Reader(text, path, ops).Read();
}

}  // namespace keel
