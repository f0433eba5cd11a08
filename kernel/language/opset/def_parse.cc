// def_parse.cc: parses the text of one op into an OpDef. kClauses has the handler of each clause.

#include <algorithm>

#include "absl/strings/ascii.h"
#include "kernel/language/opset/def.h"

namespace keel::opset {
namespace {

constexpr size_t kMaxDefs = 256;  // operands, attributes, results, ... of one op

struct TraitName {
  std::string_view name;
  Trait trait;
};
constexpr TraitName kTraits[] = {{"elementwise", Trait::kElementwise},
                                 {"commutative", Trait::kCommutative},
                                 {"alias", Trait::kAlias},
                                 {"noop_if_same", Trait::kNoopIfSame},
                                 {"noop_if_identity", Trait::kNoopIfIdentity}};

struct ClassName {
  std::string_view name;
  DTypeSet set;
};
DTypeSet KindSet(DKind kind) {
  DTypeSet set = 0;
  for (unsigned d = 1; d < static_cast<unsigned>(DType::kCount); d++)
    if (keel::Info(static_cast<DType>(d)).kind == kind) set |= Bit(static_cast<DType>(d));
  return set;
}
DTypeSet SetNamed(std::string_view name) {
  static const DTypeSet kInts = KindSet(DKind::kInt), kUints = KindSet(DKind::kUint),
                        kFloats = KindSet(DKind::kFloat);
  static const DTypeSet kNum = kInts | kUints | kFloats;
  const ClassName classes[] = {{"int", kInts},
                               {"uint", kUints},
                               {"float", kFloats},
                               {"num", kNum},
                               {"any", kNum | Bit(DType::kBool)},
                               {"storage", KindSet(DKind::kStorage)}};
  for (const ClassName& c : classes)
    if (c.name == name) return c.set;
  auto d = ParseDType(name);
  return d ? Bit(*d) : 0;
}

struct EffectName {
  std::string_view name;
  EffectKind kind;
};
constexpr EffectName kEffects[] = {{"read", EffectKind::kRead}, {"write", EffectKind::kWrite},
                                   {"io", EffectKind::kIo},     {"guard", EffectKind::kGuard},
                                   {"rng", EffectKind::kRng},   {"host", EffectKind::kHost}};

struct AttrTypeName {
  std::string_view name;
  AttrDef::Type plain, grouped, list;
};
constexpr auto kBad = static_cast<AttrDef::Type>(0xff);
// Meaning of a type name alone, with [GROUP], and with [].
constexpr AttrTypeName kAttrTypes[] = {
    {"bool", AttrDef::kBool, kBad, kBad},
    {"i64", AttrDef::kI64, AttrDef::kI64Each, AttrDef::kI64List},
    {"f64", AttrDef::kF64, kBad, AttrDef::kF64List},
    {"str", AttrDef::kStr, kBad, kBad},
    {"dtype", AttrDef::kDType, kBad, kBad},
    {"dim", AttrDef::kDim, AttrDef::kDimEach, AttrDef::kDimList},
    {"axis", AttrDef::kAxis, AttrDef::kAxisOf, kBad},
    {"axes", kBad, AttrDef::kAxesOf, kBad},
    {"perm", kBad, AttrDef::kPermOf, kBad},
    {"rank", kBad, AttrDef::kRankOf, kBad},
    {"graph", AttrDef::kGraph, kBad, AttrDef::kGraphList},
};

// text[begin, end) without trailing blanks.
std::string Slice(std::string_view text, size_t begin, size_t end) {
  return std::string(absl::StripTrailingAsciiWhitespace(text.substr(begin, end - begin)));
}

class Reader {
 public:
  Reader(std::string_view text, std::string_view origin, uint32_t line)
      : text_(text), lex_(text, origin, line), def_(std::make_unique<OpDef>()) {
    def_->origin = std::string(origin);
  }

  absl::StatusOr<std::unique_ptr<OpDef>> Op() {
    RETURN_IF_ERROR(ReadHead(lex_, &def_->name, &def_->version));
    while (!lex_.AtEnd()) RETURN_IF_ERROR(Clause());
    return std::move(def_);
  }

 private:
  using Handler = absl::Status (Reader::*)();
  struct ClauseName {
    std::string_view name;
    Handler read;
  };
  static constexpr size_t kClauseCount = 12;
  static const ClauseName kClauses[kClauseCount];

  const ClauseName* AtClause() const {
    if (lex_.AtName())
      for (const ClauseName& c : kClauses)
        if (lex_.At(c.name)) return &c;
    return nullptr;
  }

  absl::Status Clause() {
    const ClauseName* clause = AtClause();
    if (!clause)
      return lex_.Fail(
          "expected a clause: in, attr, out, type, check, fails, is, effect, class, doc, vjp or body");
    lex_.Next();
    return (this->*clause->read)();
  }

  template <typename T>
  absl::Status CheckLimit(const std::vector<T>& list) const {
    return list.size() < kMaxDefs ? absl::OkStatus() : lex_.Fail("too many definitions in one op");
  }

  absl::Status In() {
    do {
      RETURN_IF_ERROR(CheckLimit(def_->operands));
      OperandDef o;
      ASSIGN_OR_RETURN(o.name, lex_.Name("an operand's name"));
      o.variadic = lex_.Accept("...");
      o.optional = !o.variadic && lex_.Accept("?");
      RETURN_IF_ERROR(lex_.Expect(":"));
      size_t begin = lex_.offset();
      if (lex_.AtName() && lex_.PeekSecond().text == "?") {
        o.condition_name = lex_.Next().text;
        lex_.Next();
        ASSIGN_OR_RETURN(Pattern first, ReadPattern());
        o.patterns.push_back(std::move(first));
        RETURN_IF_ERROR(lex_.Expect(":"));
      }
      ASSIGN_OR_RETURN(Pattern last, ReadPattern());
      o.patterns.push_back(std::move(last));
      o.text = Slice(text_, begin, lex_.offset());
      def_->operands.push_back(std::move(o));
    } while (lex_.Accept(","));
    return absl::OkStatus();
  }

  absl::StatusOr<Pattern> ReadPattern() {
    Pattern p;
    size_t begin = lex_.offset();
    ASSIGN_OR_RETURN(p.dtype_name, lex_.Name("a dtype, a type variable or 'any'"));
    p.any = p.dtype_name == "any" && !lex_.AtPunct("[");
    if (!p.any) RETURN_IF_ERROR(ReadItems(&p));
    p.text = Slice(text_, begin, lex_.offset());
    return p;
  }

  absl::Status ReadItems(Pattern* p) {
    return lex_.List("[", "]", [&]() -> absl::Status {
      RETURN_IF_ERROR(CheckLimit(p->items));
      ASSIGN_OR_RETURN(p->items.emplace_back(), ReadItem(p));
      return absl::OkStatus();
    });
  }

  absl::StatusOr<Item> ReadItem(Pattern* p) {
    Item item;
    if (lex_.AtPunct("@")) {
      item.kind = Item::kMark;
    } else if (lex_.Accept("*")) {
      item.kind = Item::kCollect;
      ASSIGN_OR_RETURN(item.expr.text, lex_.Name("a name after '*'"));
    } else {
      ASSIGN_OR_RETURN(item.expr, ParseExpr(lex_));
      bool splice = lex_.Accept(".."), name = item.expr.kind == Expr::kName;
      item.number = item.expr.i;
      item.kind = splice ? (name ? Item::kGroup : Item::kSplice)
                         : (name                           ? Item::kName
                            : item.expr.kind == Expr::kInt ? Item::kNumber
                                                           : Item::kExpr);
    }
    if (!lex_.Accept("@")) return item;
    if (!p->axis_name.empty()) return lex_.Fail("a pattern has one '@' at most");
    ASSIGN_OR_RETURN(p->axis_name, lex_.Name("an attribute's name after '@'"));
    item.marked = true;
    return item;
  }

  absl::Status AttrClause() {
    do {
      RETURN_IF_ERROR(CheckLimit(def_->attrs));
      AttrDef a;
      ASSIGN_OR_RETURN(a.name, lex_.Name("an attribute's name"));
      RETURN_IF_ERROR(lex_.Expect(":"));
      size_t begin = lex_.offset();
      RETURN_IF_ERROR(AttrType(&a));
      a.type_text = Slice(text_, begin, lex_.offset());
      a.has_default = lex_.Accept("=");
      if (a.has_default) {
        begin = lex_.offset();
        ASSIGN_OR_RETURN(a.default_value, ParseExpr(lex_));
        a.default_text = Slice(text_, begin, lex_.offset());
      }
      def_->attrs.push_back(std::move(a));
    } while (lex_.Accept(","));
    return absl::OkStatus();
  }

  absl::Status AttrType(AttrDef* a) {
    Token at = lex_.Peek();
    ASSIGN_OR_RETURN(std::string_view word, lex_.Name("an attribute's type"));
    if (word == "enum") return Enum(a);
    if (word == "var") {
      a->type = AttrDef::kVar;
      ASSIGN_OR_RETURN(a->shape, ReadPattern());
      return absl::OkStatus();
    }
    if (word == "shape") {
      a->type = AttrDef::kShape;
      return ReadItems(&a->shape);
    }
    auto known = std::find_if(std::begin(kAttrTypes), std::end(kAttrTypes),
                              [&](const AttrTypeName& t) { return t.name == word; });
    if (known == std::end(kAttrTypes)) return lex_.FailAt(at, "unknown attribute type");
    a->type = known->plain;
    a->storage = a->type == AttrDef::kDType && lex_.Accept("or");
    if (a->storage) RETURN_IF_ERROR(lex_.Expect("storage"));
    if (lex_.Accept("[")) {
      a->type = known->list;
      if (lex_.AtName()) {
        a->group_name = lex_.Next().text;
        a->type = known->grouped;
      }
      RETURN_IF_ERROR(lex_.Expect("]"));
    }
    return a->type == kBad ? lex_.FailAt(at, "this attribute type does not exist in this form")
                           : absl::OkStatus();
  }

  absl::Status Enum(AttrDef* a) {
    a->type = AttrDef::kEnum;
    RETURN_IF_ERROR(lex_.Expect("("));
    do {
      RETURN_IF_ERROR(CheckLimit(a->choices));
      ASSIGN_OR_RETURN(std::string_view choice, lex_.Name("a choice"));
      a->choices.emplace_back(choice);
    } while (lex_.Accept(","));
    return lex_.Expect(")");
  }

  absl::Status Out() {
    do {
      RETURN_IF_ERROR(CheckLimit(def_->results));
      ResultDef r;
      ASSIGN_OR_RETURN(r.name, lex_.Name("a result's name"));
      r.variadic = lex_.Accept("...");
      RETURN_IF_ERROR(lex_.Expect(":"));
      bool of = r.variadic && lex_.Accept("of"), by = r.variadic && !of && lex_.Accept("by");
      if (of) {
        ASSIGN_OR_RETURN(r.typed_by, lex_.Name("a graph attribute's name after 'of'"));
      } else if (by) {
        ASSIGN_OR_RETURN(r.rule, lex_.Name("a rule's name after 'by'"));
      } else {
        ASSIGN_OR_RETURN(r.pattern, ReadPattern());
      }
      r.text = of ? "of " + r.typed_by : by ? "by " + r.rule : r.pattern.text;
      if (r.variadic && !of && !by) {
        RETURN_IF_ERROR(lex_.Expect("for"));
        ASSIGN_OR_RETURN(r.count, ParseExpr(lex_));
      }
      def_->results.push_back(std::move(r));
    } while (lex_.Accept(","));
    return absl::OkStatus();
  }

  absl::StatusOr<DTypeSet> ReadSet() {
    DTypeSet set = 0;
    while (lex_.AtName() && SetNamed(lex_.Peek().text) != 0) set |= SetNamed(lex_.Next().text);
    if (!set) return lex_.Fail("expected dtypes or classes (int, uint, float, num, any, storage)");
    return set;
  }

  absl::Status Type() {
    do {
      RETURN_IF_ERROR(CheckLimit(def_->types));
      TypeVar v;
      ASSIGN_OR_RETURN(v.name, lex_.Name("a type variable"));
      RETURN_IF_ERROR(lex_.Expect(":"));
      ASSIGN_OR_RETURN(v.set, ReadSet());
      def_->types.push_back(std::move(v));
    } while (lex_.Accept(","));
    return absl::OkStatus();
  }

  absl::Status CheckClause() {
    RETURN_IF_ERROR(CheckLimit(def_->checks));
    CheckDef c;
    ASSIGN_OR_RETURN(c.condition, ParseExpr(lex_));
    Token at = lex_.Peek();
    ASSIGN_OR_RETURN(std::string text, lex_.String("the check's message"));
    RETURN_IF_ERROR(ReadTemplate(text, at, &c.message));
    def_->checks.push_back(std::move(c));
    return absl::OkStatus();
  }

  absl::Status ReadTemplate(std::string_view text, const Token& at, Template* out) {
    for (size_t open = text.find('{'); open != std::string_view::npos; open = text.find('{')) {
      size_t close = text.find('}', open);
      if (close == std::string_view::npos) return lex_.FailAt(at, "a '{' without a '}' in a message");
      out->literals.emplace_back(text.substr(0, open));
      Lexer hole(text.substr(open + 1, close - open - 1), "", at.line);
      ASSIGN_OR_RETURN(Expr expr, ParseExpr(hole));
      if (!hole.AtEnd()) return lex_.FailAt(at, "braces in a message contain one expression");
      out->holes.push_back(std::move(expr));
      if (out->holes.size() > 32) return lex_.FailAt(at, "too many braces in a message");
      text = text.substr(close + 1);
    }
    out->literals.emplace_back(text);
    return absl::OkStatus();
  }

  absl::Status Fails() {
    RETURN_IF_ERROR(CheckLimit(def_->fails));
    ASSIGN_OR_RETURN(std::string_view name, lex_.Name("the failure's name"));
    FailDef fail{std::string(name), "", 0};
    if (lex_.Accept("for")) {
      ASSIGN_OR_RETURN(fail.dtypes, ReadSet());
    }
    ASSIGN_OR_RETURN(fail.text, lex_.String("the failure's text"));
    def_->fails.push_back(std::move(fail));
    return absl::OkStatus();
  }

  absl::Status Is() {
    do {
      auto known = std::find_if(std::begin(kTraits), std::end(kTraits),
                                [&](const TraitName& t) { return lex_.At(t.name); });
      if (known == std::end(kTraits)) return lex_.Fail("unknown trait");
      RETURN_IF_ERROR(CheckLimit(def_->traits));
      def_->traits.push_back(known->trait);
      lex_.Next();
    } while (lex_.AtName() && !AtClause());
    return absl::OkStatus();
  }

  absl::Status Effect() {
    auto known = std::find_if(std::begin(kEffects), std::end(kEffects),
                              [&](const EffectName& e) { return lex_.At(e.name); });
    if (known == std::end(kEffects)) return lex_.Fail("expected read, write, io, guard, rng or host");
    def_->effect = known->kind;
    lex_.Next();
    if (!lex_.Accept("(")) return absl::OkStatus();
    ASSIGN_OR_RETURN(def_->effect_on, lex_.Name("the attribute that the effect is on"));
    return lex_.Expect(")");
  }

  absl::Status Class() {
    def_->close = lex_.At("close");
    if (!lex_.Accept("close") && !lex_.Accept("exact")) return lex_.Fail("expected 'exact' or 'close'");
    return absl::OkStatus();
  }

  absl::Status Doc() {
    ASSIGN_OR_RETURN(def_->doc, lex_.String("the documentation"));
    return absl::OkStatus();
  }

  absl::Status Vjp() {
    def_->vjp.given = true;
    def_->vjp.none = lex_.Accept("none");
    if (def_->vjp.none) return absl::OkStatus();
    RETURN_IF_ERROR(lex_.Expect("("));
    do {
      RETURN_IF_ERROR(CheckLimit(def_->vjp.cotangents));
      ASSIGN_OR_RETURN(std::string_view name, lex_.Name("a cotangent's name"));
      def_->vjp.cotangents.emplace_back(name);
    } while (lex_.Accept(","));
    RETURN_IF_ERROR(lex_.Expect(")"));
    ASSIGN_OR_RETURN(def_->vjp.block, ParseBlock(lex_));
    return absl::OkStatus();
  }

  absl::Status Body() {
    ASSIGN_OR_RETURN(def_->body, ParseBlock(lex_));
    return absl::OkStatus();
  }

  std::string_view text_;
  Lexer lex_;
  std::unique_ptr<OpDef> def_;
};

const Reader::ClauseName Reader::kClauses[kClauseCount] = {
    {"in", &Reader::In},     {"attr", &Reader::AttrClause},   {"out", &Reader::Out},
    {"type", &Reader::Type}, {"check", &Reader::CheckClause}, {"fails", &Reader::Fails},
    {"is", &Reader::Is},     {"effect", &Reader::Effect},     {"class", &Reader::Class},
    {"doc", &Reader::Doc},   {"vjp", &Reader::Vjp},           {"body", &Reader::Body}};

}  // namespace

absl::Status ReadHead(Lexer& lex, std::string* name, uint32_t* version) {
  RETURN_IF_ERROR(lex.Expect("op"));
  ASSIGN_OR_RETURN(*name, lex.Name("the op's name"));
  while (lex.Accept(".")) {
    ASSIGN_OR_RETURN(std::string_view next, lex.Name("a name after '.'"));
    absl::StrAppend(name, ".", next);
  }
  RETURN_IF_ERROR(lex.Expect("since"));
  ASSIGN_OR_RETURN(int64_t number, lex.Int("a version"));
  if (number < 1 || number > 1'000'000) return lex.Fail("versions are 1 to 1000000");
  *version = static_cast<uint32_t>(number);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<OpDef>> ParseOp(std::string_view text, std::string_view origin,
                                               uint32_t line) {
  ASSIGN_OR_RETURN(auto def, Reader(text, origin, line).Op());
  RETURN_IF_ERROR(Resolve(def.get()));
  return def;
}

}  // namespace keel::opset
