// read.cc: the text of rules to patterns and definitions; an error says file:line:column. A word after `for` in
// a rule stands for several ops: the rule is read once for each.
#include <algorithm>
#include <map>

#include "absl/strings/str_join.h"
#include "kernel/rules/rules.h"

namespace keel {
namespace rules {
namespace {

using opset::CheckDef;
using opset::Expr;

constexpr size_t kMostText = 1 << 20, kMostRules = 4096, kMostNodes = 64;

struct Word {
  std::string_view text;
  int32_t value;
};
constexpr Word kPhases[] = {{"canon", KEEL_PHASE_CANON}, {"placed", KEEL_PHASE_PLACED}, {"lower", KEEL_PHASE_LOWER}};
constexpr Word kClasses[] = {{"exact", KEEL_EXACT}, {"close", KEEL_CLOSE}, {"fast", KEEL_FAST}};

const Word* Find(std::span<const Word> words, const Lexer& lex) {
  auto found = std::find_if(words.begin(), words.end(), [&](const Word& w) { return lex.At(w.text); });
  return found == words.end() ? nullptr : &*found;
}

// One rule behind its name.
class RuleReader {
 public:
  RuleReader(Lexer& lex, const Catalogue& ops, const std::string& path, Rule* rule)
      : lex_(lex), ops_(ops), rule_(*rule), def_(rule->def) {
    def_.origin = path;
    Value("result");
    opset::ResultDef result;
    result.pattern.dtype_name = "f32";  // of no meaning: the type is that of `result`
    def_.results.push_back(result);
  }

  absl::Status Read(std::string_view alias, std::string_view op) {
    alias_ = alias;
    op_ = op;
    RETURN_IF_ERROR(lex_.Expect("match"));
    ASSIGN_OR_RETURN(Expr match, Expression());
    if (lex_.Accept("where")) RETURN_IF_ERROR(Where());
    rule_.pattern.name = 0;
    RETURN_IF_ERROR(Read(match, &rule_.pattern));
    if (rule_.pattern.kind != Pattern::kCall) return Fail(match, "a rule matches an op");
    for (const auto& [name, part] : where_)
      if (part.state != kUsed) return Fail(part.value, "'", name, "' is not in the pattern; match names it");
    if (lex_.Accept("when")) RETURN_IF_ERROR(When());
    RETURN_IF_ERROR(lex_.Expect("build"));
    return Build();
  }

 private:
  enum State : uint8_t { kNew, kOpen, kUsed };
  struct Part {
    Expr value;
    State state = kNew;
  };

  template <typename... Parts>
  absl::Status Fail(const Expr& e, const Parts&... parts) const {
    return Invalid(def_.origin, ":", e.line, ":", e.column, ": ", def_.name, ": ", parts...);
  }

  absl::StatusOr<Expr> Expression() {
    ASSIGN_OR_RETURN(Expr e, opset::ParseExpr(lex_));
    Rename(&e);
    return e;
  }
  void Rename(Expr* e) const {
    if (e->kind == Expr::kCall && e->text == alias_) e->text = op_;
    for (Expr& part : e->parts) Rename(&part);
  }

  absl::Status Where() {
    do {
      Token at = lex_.Peek();
      ASSIGN_OR_RETURN(std::string_view name, lex_.Name("a name"));
      RETURN_IF_ERROR(lex_.Expect("="));
      ASSIGN_OR_RETURN(Expr value, Expression());
      if (value.kind == Expr::kName) return lex_.FailAt(at, "a second name for a value: use one");
      if (!where_.try_emplace(std::string(name), Part{std::move(value)}).second)
        return lex_.FailAt(at, "this name has a meaning already");
    } while (lex_.Accept(","));
    return absl::OkStatus();
  }

  absl::Status When() {
    do {
      if (lex_.At("supported")) {
        lex_.Next();
        rule_.supported = true;
        continue;
      }
      CheckDef check;
      ASSIGN_OR_RETURN(check.condition, Expression());
      def_.checks.push_back(std::move(check));
    } while (lex_.Accept(","));
    return absl::OkStatus();
  }

  absl::Status Build() {
    if (lex_.AtPunct("{")) {
      ASSIGN_OR_RETURN(def_.body, opset::ParseBlock(lex_));
    } else {
      opset::Statement result;
      result.kind = opset::Statement::kReturn;
      ASSIGN_OR_RETURN(Expr value, Expression());
      result.values.push_back(std::move(value));
      def_.body.push_back(std::move(result));
    }
    for (opset::Statement& s : def_.body)
      for (Expr& value : s.values) Rename(&value);
    RETURN_IF_ERROR(opset::Resolve(&def_));
    absl::Status status;
    opset::ForEachCall(def_, [&](const Expr& call) {
      if (!status.ok()) return;
      absl::StatusOr<const OpDef*> op = Op(call, call.text, call.parts.size());
      status = op.status();
      for (const auto& [name, value] : call.attrs)
        if (status.ok()) status = Attribute(call, **op, name).status();
    });
    return status;
  }

  // The operand of that name.
  int16_t Value(const std::string& name) {
    auto& all = def_.operands;
    auto found = std::find_if(all.begin(), all.end(), [&](const auto& o) { return o.name == name; });
    if (found == all.end()) {
      opset::OperandDef operand;
      operand.name = name;
      operand.patterns.emplace_back().any = true;
      found = all.insert(found, std::move(operand));
    }
    return static_cast<int16_t>(found - all.begin());
  }
  bool IsSlot(std::string_view name) const {
    return std::find(def_.slots.begin(), def_.slots.end(), name) != def_.slots.end();
  }
  uint16_t Slot(std::string name) {
    def_.slots.push_back(std::move(name));
    def_.group_length.push_back(opset::kNoSlot);
    return static_cast<uint16_t>(def_.slots.size() - 1);
  }

  absl::StatusOr<const OpDef*> Op(const Expr& at, std::string_view name, size_t operands) const {
    absl::StatusOr<const OpDef*> op = ops_.Find(name, 0);
    if (!op.ok()) return Fail(at, op.status().message());
    const OpDef& def = **op;
    if (HasEffect(def) || IsTypedByGraph(def) || IsControl(def) || def.results.size() != 1 || def.results[0].variadic)
      return Fail(at, name, " has an effect, bodies or several results: rules are about other ops");
    if (operands < def.required_operands || (operands > def.operands.size() && !def.has_variadic))
      return Fail(at, name, " has ", operands, " operands here, wanted ", def.operands.size());
    return op;
  }

  absl::StatusOr<const opset::AttrDef*> Attribute(const Expr& at, const OpDef& op, std::string_view name) const {
    std::vector<std::string_view> names;
    for (const opset::AttrDef& a : op.attrs) {
      if (a.name == name) return &a;
      names.push_back(a.name);
    }
    return Fail(at, op.name, " has no attribute '", name, "'; ",
                names.empty() ? "it has none" : "it has " + absl::StrJoin(names, ", "));
  }

  absl::Status Read(const Expr& e, Pattern* p) {
    if (++nodes_ > kMostNodes) return Fail(e, "the pattern has more than ", kMostNodes, " parts");
    bool minus = e.kind == Expr::kNeg && e.parts[0].text == "inf";
    const std::string& word = minus ? e.parts[0].text : e.text;
    p->kind = Pattern::kNumber;
    if (e.kind == Expr::kInt || e.kind == Expr::kFloat) {
      p->number = e.kind == Expr::kInt ? static_cast<double>(e.i) : e.f;
    } else if (minus || (e.kind == Expr::kName && (word == "inf" || word == "nan"))) {
      p->number = minus ? -__builtin_inf() : word == "inf" ? __builtin_inf() : __builtin_nan("");
    } else if (e.kind == Expr::kName && (word == "true" || word == "false")) {
      p->number = word == "true";
    } else if (e.kind == Expr::kName) {
      return Named(e, p);
    } else if (e.kind == Expr::kCall) {
      return Call(e, e.text, p);
    } else if (e.kind == Expr::kNeg) {
      return Call(e, "neg", p);
    } else if (e.kind == Expr::kBinary && !opset::Info(e.op).op.empty()) {
      return Call(e, opset::Info(e.op).op, p);
    } else {
      return Fail(e, "a pattern is made of ops, names and numbers");
    }
    return absl::OkStatus();
  }

  absl::Status Named(const Expr& e, Pattern* p) {
    p->kind = e.text == "none" ? Pattern::kNone : Pattern::kAny;
    if (e.text == "none") return absl::OkStatus();
    if (e.text == "result") return Fail(e, "'result' is the name of the whole");
    if (IsSlot(e.text)) return Fail(e, "'", e.text, "' is an attribute: name the value differently");
    p->name = Value(e.text);
    auto part = where_.find(e.text);
    if (part == where_.end() || part->second.state == kUsed) return absl::OkStatus();
    if (part->second.state == kOpen) return Fail(e, "'", e.text, "' is made of itself");
    part->second.state = kOpen;
    RETURN_IF_ERROR(Read(part->second.value, p));
    part->second.state = kUsed;
    return absl::OkStatus();
  }

  absl::Status Call(const Expr& e, std::string_view name, Pattern* p) {
    p->kind = Pattern::kCall;
    ASSIGN_OR_RETURN(p->op, Op(e, name, e.parts.size()));
    p->commutes = Has(*p->op, Trait::kCommutative);
    if (p->commutes && ++commuting_ > kMostCommuting)
      return Fail(e, "more than ", kMostCommuting, " ops in one pattern commute");
    p->in.resize(e.parts.size());
    for (size_t i = 0; i < p->in.size(); i++) RETURN_IF_ERROR(Read(e.parts[i], &p->in[i]));
    for (const auto& [attr, value] : e.attrs) {
      ASSIGN_OR_RETURN(const opset::AttrDef* def, Attribute(e, *p->op, attr));
      RETURN_IF_ERROR(Match(value, *def, p));
    }
    return absl::OkStatus();
  }

  // A new name is bound to the attribute; with all else it is compared.
  absl::Status Match(const Expr& value, const opset::AttrDef& attr, Pattern* p) {
    auto is_choice = std::find(attr.choices.begin(), attr.choices.end(), value.text) != attr.choices.end();
    bool literal = is_choice || value.text == "true" || value.text == "false" || value.text == "inf" ||
                   DTypeNamed(value.text);
    if (value.kind == Expr::kName && !literal && !IsSlot(value.text)) {
      for (const auto& o : def_.operands)
        if (o.name == value.text) return Fail(value, "'", value.text, "' is a value: name the attribute differently");
      p->attrs.emplace_back(attr.name, Slot(value.text));
      return absl::OkStatus();
    }
    CheckDef check;
    check.condition = value;
    check.condition.kind = Expr::kBinary;
    check.condition.op = opset::BinOp::kEq;
    Expr own = value;
    own.kind = Expr::kName;
    own.text = absl::StrCat("{", def_.slots.size(), "}");  // no name of the text
    p->attrs.emplace_back(attr.name, Slot(own.text));
    check.condition.parts = {own, value};
    if (is_choice) check.condition.parts[1].kind = Expr::kString;
    def_.checks.push_back(std::move(check));
    return absl::OkStatus();
  }

  Lexer& lex_;
  const Catalogue& ops_;
  Rule& rule_;
  OpDef& def_;
  std::string_view alias_, op_;
  std::map<std::string, Part> where_;
  size_t nodes_ = 0, commuting_ = 0;
};

class FileReader {
 public:
  FileReader(std::string_view text, const std::string& path, const Catalogue& ops)
      : lex_(text, path), path_(path), ops_(ops), plugin_(std::make_unique<Plugin>()) {}

  absl::StatusOr<std::unique_ptr<Plugin>> Read() {
    RETURN_IF_ERROR(lex_.Expect("keel"));
    RETURN_IF_ERROR(lex_.Expect("rules"));
    Token at = lex_.Peek();
    ASSIGN_OR_RETURN(int64_t version, lex_.Int("the version of the language, 1"));
    if (version != 1) return lex_.FailAt(at, "this libkeel reads version 1 of the language");
    while (!lex_.AtEnd()) RETURN_IF_ERROR(ReadPass());
    plugin_->path = path_;
    plugin_->about = "rules";
    return std::move(plugin_);
  }

 private:
  absl::StatusOr<std::string> Names(std::string_view what) {
    std::string all;
    do {
      ASSIGN_OR_RETURN(std::string_view name, lex_.Name(what));
      absl::StrAppend(&all, all.empty() ? "" : " ", name);
    } while (lex_.Accept(","));
    return all;
  }

  absl::Status ReadPass() {
    auto pass = std::make_shared<RulePass>();
    Pass entry{{}, plugin_.get()};
    entry.extends = lex_.Accept("extend");
    if (!entry.extends) RETURN_IF_ERROR(lex_.Expect("pass"));
    Token at = lex_.Peek();
    ASSIGN_OR_RETURN(pass->name, lex_.Name("the pass's name"));
    for (const Pass& other : plugin_->passes)
      if (pass->name == other.table.name) return lex_.FailAt(at, "this file has that pass already");
    if (lex_.Peek().kind == Token::kString) {
      ASSIGN_OR_RETURN(pass->about, lex_.String("what the pass does"));
    }
    entry.table.phase = KEEL_PHASE_CANON;
    while (!lex_.AtEnd() && !lex_.At("rule") && !lex_.At("pass") && !lex_.At("extend"))
      RETURN_IF_ERROR(Clause(entry.extends, pass.get(), &entry.table));
    if (!entry.table.level) entry.table.level = entry.table.exactness == KEEL_FAST ? 3 : 1;
    while (lex_.Accept("rule")) RETURN_IF_ERROR(ReadRule(pass.get()));
    for (const Rule& rule : pass->rules) pass->by_op[rule.pattern.op].push_back(&rule);
    entry.table.name = pass->name.c_str();
    entry.table.about = pass->about.c_str();
    entry.table.after = pass->after.c_str();
    entry.table.before = pass->before.c_str();
    if (absl::Status status = CheckPass(entry.table, plugin_->passes.size()); !status.ok())
      return lex_.FailAt(at, status.message());
    entry.by_rule = [pass](keel_edit* edit) { return Run(*pass, edit); };
    plugin_->passes.push_back(std::move(entry));
    return absl::OkStatus();
  }

  absl::Status Clause(bool extends, RulePass* pass, keel_pass* table) {
    if (lex_.Accept("for")) {
      ASSIGN_OR_RETURN(pass->device, lex_.Name("a kind of device"));
    } else if (extends) {
      return lex_.Fail("expected 'rule' or 'for': all else is as in the pass that is extended");
    } else if (lex_.Accept("level")) {
      ASSIGN_OR_RETURN(int64_t level, lex_.Int("a level, 1 to 3"));
      table->level = static_cast<int32_t>(std::clamp<int64_t>(level, -1, 4));
    } else if (lex_.Accept("phase")) {
      const Word* phase = Find(kPhases, lex_);
      if (!phase) return lex_.Fail("expected canon, placed or lower");
      table->phase = phase->value;
      lex_.Next();
    } else if (const Word* grade = Find(kClasses, lex_)) {
      table->exactness = grade->value;
      lex_.Next();
    } else if (lex_.At("after") || lex_.At("before")) {
      std::string& list = lex_.Next().text == "after" ? pass->after : pass->before;
      ASSIGN_OR_RETURN(list, Names("a pass"));
    } else {
      return lex_.Fail("expected rule, or level, phase, exact, close, fast, after, before, for");
    }
    return absl::OkStatus();
  }

  absl::Status ReadRule(RulePass* pass) {
    ASSIGN_OR_RETURN(std::string_view name, lex_.Name("the rule's name"));
    std::string_view alias;
    std::string ops = "-";
    if (lex_.Accept("for")) {
      ASSIGN_OR_RETURN(alias, lex_.Name("a name for several ops"));
      RETURN_IF_ERROR(lex_.Expect("in"));
      ASSIGN_OR_RETURN(ops, Names("an op"));
    }
    Lexer begin = lex_;
    std::string_view left = ops;
    while (!left.empty()) {
      if (++rules_ > kMostRules) return lex_.Fail(absl::StrCat("more than ", kMostRules, " rules"));
      std::string_view op = left.substr(0, left.find(' '));
      left.remove_prefix(std::min(left.size(), op.size() + 1));
      lex_ = begin;
      Rule& rule = pass->rules.emplace_back();
      rule.def.name = absl::StrCat("rule ", name);
      RETURN_IF_ERROR(RuleReader(lex_, ops_, path_, &rule).Read(alias, op));
    }
    return absl::OkStatus();
  }

  Lexer lex_;
  const std::string& path_;
  const Catalogue& ops_;
  std::unique_ptr<Plugin> plugin_;
  size_t rules_ = 0;
};

}  // namespace
}  // namespace rules

absl::StatusOr<std::unique_ptr<Plugin>> ReadRules(std::string_view text, const std::string& path,
                                                  const Catalogue& ops) {
  if (text.size() > rules::kMostText) return Invalid("rules of more than 1 MiB");
  return rules::FileReader(text, path, ops).Read();
}

}  // namespace keel
