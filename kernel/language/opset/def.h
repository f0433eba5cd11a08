// def.h: a parsed op definition. Names of dims, groups, attributes and lets are slots of one table, and type
// variables are slots of another, so inference indexes arrays and compares no strings.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/language/opset/expr.h"
#include "kernel/language/opset/opset.h"

namespace keel::opset {

inline constexpr uint16_t kNoSlot = 0xffff;
inline constexpr size_t kMaxOpSlots = 64, kMaxOpTypes = 16, kMaxList = 4096;

using DTypeSet = uint32_t;  // bit d: DType d
inline DTypeSet Bit(DType d) { return DTypeSet{1} << static_cast<unsigned>(d); }

// The source of a pattern's dtype.
struct DTypeRef {
  enum Kind : uint8_t { kFixed, kVariable, kAttr } kind = kFixed;
  DType fixed = DType::kNone;
  uint16_t index = 0;  // type variable, or slot of the attribute
};

struct Item {
  enum Kind : uint8_t { kNumber, kName, kGroup, kCollect, kMark, kExpr, kSplice } kind = kNumber;
  bool marked = false;  // "n@axis"
  uint16_t slot = kNoSlot;
  int64_t number = 0;
  Expr expr;  // kExpr, kSplice; the name for kName and kGroup until resolved
};

struct Pattern {
  bool any = false;
  DTypeRef dtype;
  std::string dtype_name;
  std::vector<Item> items;
  std::string axis_name;  // of the '@', if any
  uint16_t axis = kNoSlot;
  std::string text;  // as written
};

struct OperandDef {
  std::string name;
  bool optional = false, variadic = false;
  std::string condition_name;  // "ta" of `ta ? A : B`
  uint16_t condition = kNoSlot;
  std::vector<Pattern> patterns;  // one; with a condition two: if true, if false
  std::string text;
};

struct AttrDef {
  enum Type : uint8_t {
    kBool,
    kI64,
    kF64,
    kStr,
    kDType,
    kDim,
    kEnum,
    kI64Each,
    kDimEach,  // i64[P] dim[P]
    kI64List,
    kDimList,
    kF64List,  // i64[] dim[] f64[]
    kShape,
    kAxis,
    kAxisOf,
    kAxesOf,
    kPermOf,
    kRankOf,
    kGraph,
    kGraphList,
    kVar  // `var T[P..]`: a variable of the module, matched like an operand
  };
  std::string name, type_text, default_text;
  Type type = kBool;
  bool has_default = false;
  bool storage = false;  // a kDType that may be a storage dtype
  Expr default_value;
  std::vector<std::string> choices;
  std::string group_name;
  uint16_t slot = kNoSlot, group = kNoSlot;
  Pattern shape;  // kShape, kVar
};
int32_t KindOf(AttrDef::Type);   // the KEEL_ATTR_* of the attribute after inference
bool NeedsGroup(AttrDef::Type);  // resolved after the operands are matched

struct ResultDef {
  std::string name;
  bool variadic = false;
  Pattern pattern;
  Expr count;            // the list after `for`, of a variadic result
  std::string typed_by;  // `of` attribute: the results of a graph
  std::string rule;      // `by` rule: control.cc
  std::string text;
};

struct ControlRule;  // control.cc

struct TypeVar {
  std::string name;
  DTypeSet set = 0;
};

// A message with placeholders: literal, placeholder, literal, ... literal.
struct Template {
  std::vector<std::string> literals;
  std::vector<Expr> holes;
};

struct CheckDef {
  Expr condition;
  Template message;
};

struct FailDef {
  std::string name, text;
  DTypeSet dtypes = 0;  // of the first operand; 0: all
};

struct Rule {  // a vjp
  bool none = false, given = false;
  std::vector<std::string> cotangents;
  Block block;
};

}  // namespace keel::opset

namespace keel {

struct OpDef {
  std::string name, doc, origin;
  uint32_t version = 0;
  std::vector<opset::OperandDef> operands;
  std::vector<opset::AttrDef> attrs;
  std::vector<uint16_t> attrs_by_name;  // indices into attrs, sorted by name
  std::vector<opset::ResultDef> results;
  std::vector<opset::TypeVar> types;
  std::vector<opset::CheckDef> checks;
  std::vector<opset::FailDef> fails;
  std::vector<Trait> traits;
  EffectKind effect = EffectKind::kNone;
  std::string effect_on;  // the attribute that names the variable or stream, or ""
  bool close = false;
  opset::Rule vjp;
  opset::Block body;
  opset::Block
      match;  // of a rewrite rule (version 0, kernel/runtime/rules): its pattern, then the `where` statements
  bool when_supported = false;     // of a rewrite rule: applies only if the device supports the replacement
  std::vector<std::string> slots;  // names
  std::vector<uint16_t> group_length;  // per slot: the slot of the rank[...] attribute that sizes it
  size_t required_operands = 0;
  bool has_variadic = false;  // the last operand
  // Slot of the graph attribute that defines the types of operands and results.
  uint16_t typed_by = opset::kNoSlot;
  const opset::ControlRule* control = nullptr;
};

}  // namespace keel

namespace keel::opset {

// The operand at this position; a variadic operand covers several.
inline const OperandDef& OperandAt(const OpDef& def, size_t position) {
  return def.operands[std::min(position, def.operands.size() - 1)];
}

// Reads "op NAME since N".
absl::Status ReadHead(Lexer&, std::string* name, uint32_t* version);
// Parses the text of one op, from "op NAME since N" to its end. `line`: its first line in the file.
absl::StatusOr<std::unique_ptr<OpDef>> ParseOp(std::string_view text, std::string_view origin, uint32_t line);
// Replaces names by slots; rejects undefined names and ambiguous patterns.
absl::Status Resolve(OpDef*);
absl::Status FailIn(const OpDef&, uint32_t line, uint32_t column, std::string_view message);
// Checks that calls in bodies and rules name existing ops and attributes, with valid choices and operand
// counts.
absl::Status CheckCalls(const Catalogue&, const OpDef&);
// Visits the op calls in the body, the gradient rule and the pattern.
void ForEachCall(const OpDef&, const std::function<void(const Expr&)>& visit);

}  // namespace keel::opset
