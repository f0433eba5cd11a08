// def.h: a parsed op definition. Names of dims, groups, attributes and lets are slots of one table,
// type variables of another, so that inference indexes arrays and never compares strings.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/opset/expr.h"
#include "kernel/opset/opset.h"

namespace keel::opset {

inline constexpr uint16_t kNoSlot = 0xffff;
inline constexpr size_t kMaxOpSlots = 64, kMaxOpTypes = 16, kMaxList = 4096;

using DTypeSet = uint16_t;  // bit d: DType d
inline DTypeSet Bit(DType d) { return static_cast<DTypeSet>(1u << static_cast<unsigned>(d)); }

// Where a pattern's dtype comes from.
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
  std::vector<Pattern> patterns;  // one, or two: if the condition is true, if not
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
  Expr default_value;
  std::vector<std::string> choices;
  std::string group_name;
  uint16_t slot = kNoSlot, group = kNoSlot;
  Pattern shape;  // kShape, kVar
};
int32_t KindOf(AttrDef::Type);   // the KEEL_ATTR_* it ends up as
bool NeedsGroup(AttrDef::Type);  // settled after the operands are matched

struct ResultDef {
  std::string name;
  bool variadic = false;
  Pattern pattern;
  Expr count;            // `for` list of a variadic
  std::string typed_by;  // `of` attribute: the results of a graph
  std::string rule;      // `by` rule: control.cc
  std::string text;
};

struct ControlRule;  // control.cc

struct TypeVar {
  std::string name;
  DTypeSet set = 0;
};

// A text with holes: literal, hole, literal, hole ... literal.
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
  DTypeSet dtypes = 0;  // of the first operand; 0: any
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
  std::string effect_on;  // the attribute that says which variable or stream; "": none
  bool close = false;
  opset::Rule vjp;
  opset::Block body;
  opset::Block match;              // of a rule (version 0, kernel/rules): its pattern, then what `where` says
  bool when_supported = false;     // likewise: only where the device has what is built
  std::vector<std::string> slots;  // names
  std::vector<uint16_t> group_length;  // per slot: the slot of the rank[...] attribute that sizes it
  size_t required_operands = 0;
  bool has_variadic = false;           // it is the last operand
  uint16_t typed_by = opset::kNoSlot;  // of the graph attribute that types operands and results
  const opset::ControlRule* control = nullptr;
};

}  // namespace keel

namespace keel::opset {

// Text of one op, from "op NAME since N" to its end. `line` is the line of its first word in the file.
absl::StatusOr<std::unique_ptr<OpDef>> ParseOp(std::string_view text, std::string_view origin, uint32_t line);
// Turns names into slots; refuses unbound names and patterns that could match in two ways.
absl::Status Resolve(OpDef*);
absl::Status FailIn(const OpDef&, uint32_t line, uint32_t column, std::string_view message);
// Calls in bodies and rules must name ops, their attributes and choices, and no more operands than there are.
absl::Status CheckCalls(const Catalogue&, const OpDef&);
// The ops that rules and bodies mention, with their calls, for checks against a catalogue.
void ForEachCall(const OpDef&, const std::function<void(const Expr&)>& visit);

}  // namespace keel::opset
