// facts.cc: properties of op definitions.

#include <algorithm>

#include "abi/keel_plugin.h"
#include "kernel/language/opset/def.h"

namespace keel {
namespace {

using opset::Expr;
using opset::Item;
using opset::kNoSlot;

// The slot of a pattern that consists of one group: "T[P..]".
uint16_t OnlyGroup(const opset::Pattern& pattern) {
  bool group = !pattern.any && pattern.items.size() == 1 && pattern.items[0].kind == Item::kGroup;
  return group ? pattern.items[0].slot : kNoSlot;
}

// Collects the groups of bcast(bcast(P, Q), R); false for other expressions.
bool Broadcasts(const Expr& e, std::vector<uint16_t>* groups) {
  if (e.kind == Expr::kName && e.ref == Expr::kSlot) {
    groups->push_back(e.index);
    return true;
  }
  return e.kind == Expr::kCall && e.text == "bcast" &&
         std::all_of(e.parts.begin(), e.parts.end(), [&](const Expr& p) { return Broadcasts(p, groups); });
}

}  // namespace

ShapeRule ShapeRuleOf(const OpDef& def) {
  if (def.results.size() != 1 || def.results[0].variadic || !def.checks.empty()) return ShapeRule::kInferred;
  std::vector<uint16_t> groups, result;
  for (const opset::OperandDef& o : def.operands) {
    groups.push_back(o.optional || o.variadic || o.patterns.size() != 1 ? kNoSlot : OnlyGroup(o.patterns[0]));
    if (groups.back() == kNoSlot) return ShapeRule::kInferred;
  }
  const opset::Pattern& pattern = def.results[0].pattern;
  if (groups.empty() || pattern.any || pattern.items.size() != 1) return ShapeRule::kInferred;
  auto all_are = [&](uint16_t slot) {
    return std::all_of(groups.begin(), groups.end(), [&](uint16_t g) { return g == slot; });
  };
  if (all_are(OnlyGroup(pattern))) return ShapeRule::kSame;
  bool splice = pattern.items[0].kind == Item::kSplice;
  return splice && Broadcasts(pattern.items[0].expr, &result) && result == groups ? ShapeRule::kBroadcast
                                                                                  : ShapeRule::kInferred;
}

std::string_view OpName(const OpDef& def) { return def.name; }
uint32_t OpVersion(const OpDef& def) { return def.version; }
std::string_view OpDoc(const OpDef& def) { return def.doc; }
bool Has(const OpDef& def, Trait trait) {
  return std::find(def.traits.begin(), def.traits.end(), trait) != def.traits.end();
}
uint32_t TraitBits(const OpDef& def) {
  uint32_t bits = ShapeRuleOf(def) == ShapeRule::kBroadcast ? uint32_t{KEEL_TRAIT_BROADCASTS} : 0;
  if (!def.attrs.empty()) bits |= KEEL_TRAIT_ATTRIBUTES;
  for (Trait trait : def.traits) bits |= 1u << static_cast<unsigned>(trait);
  return bits;
}
std::vector<std::string_view> TraitNames(const OpDef& def) {
  constexpr std::string_view kNames[] = {"elementwise",      "commutative", "alias",     "noop_if_same",
                                         "noop_if_identity", "broadcasts",  "attributes"};
  std::vector<std::string_view> names;
  for (uint32_t bits = TraitBits(def), i = 0; bits != 0; bits >>= 1, i++)
    if (bits & 1) names.push_back(kNames[i]);
  return names;
}
bool HasBody(const OpDef& def) { return !def.body.empty(); }
bool HasEffect(const OpDef& def) { return def.effect != EffectKind::kNone; }
EffectKind EffectOf(const OpDef& def) { return def.effect; }
std::string_view EffectOn(const OpDef& def) { return def.effect_on; }
std::string_view VarAttr(const OpDef& def) {
  for (const auto& a : def.attrs)
    if (a.type == opset::AttrDef::kVar) return a.name;
  return "";
}
std::string_view SizeAttr(const OpDef& def) {
  for (const auto& a : def.attrs)
    if (a.default_text == kNewSize) return a.name;
  return "";
}
bool HasNewSize(const OpDef& def) { return !SizeAttr(def).empty(); }
bool IsSizedComposite(const OpDef& def) { return HasNewSize(def) && HasBody(def); }
bool MayFail(const OpDef& def, DType first) {
  return std::any_of(def.fails.begin(), def.fails.end(), [&](const opset::FailDef& f) {
    return !f.dtypes || first == DType::kNone || f.dtypes & opset::Bit(first);
  });
}
bool TakesStorage(const OpDef& def) {
  return std::any_of(def.types.begin(), def.types.end(),
                     [](const opset::TypeVar& v) { return v.set & opset::Bit(DType::kF8E4M3FN); });
}
bool IsClose(const OpDef& def) { return def.close; }
bool IsTypedByGraph(const OpDef& def) { return def.typed_by != opset::kNoSlot; }
bool IsControl(const OpDef& def) { return def.control != nullptr; }

std::vector<OperandInfo> OpOperands(const OpDef& def) {
  std::vector<OperandInfo> out;
  for (const auto& o : def.operands) out.push_back({o.name, o.text, o.optional, o.variadic});
  return out;
}

std::vector<AttrInfo> OpAttrs(const OpDef& def) {
  std::vector<AttrInfo> out;
  for (const auto& a : def.attrs)
    out.push_back({a.name, a.type_text, a.default_text, opset::KindOf(a.type), a.choices});
  return out;
}

std::vector<ResultInfo> OpResults(const OpDef& def) {
  std::vector<ResultInfo> out;
  for (const auto& r : def.results) out.push_back({r.name, r.text, r.variadic});
  return out;
}

bool HasTypeVariable(const OpDef& def, std::string_view name) {
  return std::any_of(def.types.begin(), def.types.end(), [&](const auto& v) { return v.name == name; });
}

std::vector<std::pair<std::string, std::vector<DType>>> OpTypes(const OpDef& def) {
  std::vector<std::pair<std::string, std::vector<DType>>> out;
  for (const auto& v : def.types) {
    std::vector<DType> dtypes;
    for (unsigned d = 1; d < static_cast<unsigned>(DType::kCount); d++)
      if (v.set & opset::Bit(static_cast<DType>(d))) dtypes.push_back(static_cast<DType>(d));
    out.emplace_back(v.name, std::move(dtypes));
  }
  return out;
}

}  // namespace keel
