// attrs.cc: attributes: checks given values against their declared types, fills in defaults, and, once the
// operands are known, broadcasts, normalises or matches lists that belong to a group.

#include <algorithm>

#include "absl/strings/str_join.h"
#include "kernel/language/opset/infer_internal.h"

namespace keel {

void SortAttrs(Attrs* attrs) {
  std::sort(attrs->begin(), attrs->end(), [](const Attr& a, const Attr& b) { return a.name < b.name; });
}

const AttrValue* FindAttr(const Attrs& attrs, std::string_view name) {
  for (const Attr& a : attrs)
    if (a.name == name) return &a.value;
  return nullptr;
}

int64_t IntAttr(const Attrs& attrs, std::string_view name, int64_t otherwise) {
  const AttrValue* found = FindAttr(attrs, name);
  return found ? found->i : otherwise;
}

std::string_view AttrKindName(int32_t kind) {
  constexpr std::string_view kNames[] = {
      "nothing", "a bool",     "an integer",         "a float",          "a string",
      "a dtype", "a dim",      "a list of integers", "a list of floats", "a list of dims",
      "a graph", "a variable", "a list of graphs"};
  return kind >= 0 && kind < static_cast<int32_t>(std::size(kNames)) ? kNames[kind] : "of an unknown kind";
}

}  // namespace keel

namespace keel::opset {
namespace {

absl::Status WrongKind(const Env& env, const AttrDef& a, const AttrValue& v) {
  return env.Fail("attribute ", a.name, " is ", a.type_text, " but got ", AttrKindName(v.kind));
}

bool IsScalar(const AttrValue& v) { return v.kind == KEEL_ATTR_I64 || v.kind == KEEL_ATTR_DIM; }
bool IsList(const AttrValue& v) {
  return v.kind == KEEL_ATTR_I64S || v.kind == KEEL_ATTR_DIMS ||
         (v.kind == KEEL_ATTR_F64S && v.floats.empty());
}
bool TakesDims(AttrDef::Type t) {
  return t == AttrDef::kDim || t == AttrDef::kDimEach || t == AttrDef::kDimList || t == AttrDef::kShape;
}

absl::Status CheckEntry(const Env& env, const AttrDef& a, int64_t value) {
  if (!IsSymbolic(value)) return absl::OkStatus();
  if (!TakesDims(a.type)) return env.Fail("attribute ", a.name, " must be a number, not a symbolic dim");
  return env.dims.Contains(value) ? absl::OkStatus()
                                  : env.Fail("attribute ", a.name, " holds a dim of another module");
}

absl::Status TakeScalar(const Env& env, const AttrDef& a, const AttrValue& v, Val* out) {
  if (!IsScalar(v)) return WrongKind(env, a, v);
  RETURN_IF_ERROR(CheckEntry(env, a, v.i));
  return out->Set(Val::kInt, v.i);
}

absl::Status TakeList(const Env& env, const AttrDef& a, const AttrValue& v, Val* out) {
  if (!IsList(v)) return WrongKind(env, a, v);
  if (v.list.size() > kMaxList)
    return env.Fail("attribute ", a.name, " has more than ", kMaxList, " entries");
  for (int64_t entry : v.list) RETURN_IF_ERROR(CheckEntry(env, a, entry));
  out->kind = Val::kList;
  out->list.assign(v.list.begin(), v.list.end());
  return absl::OkStatus();
}

absl::Status TakeChoice(const Env& env, const AttrDef& a, std::string_view word) {
  if (std::find(a.choices.begin(), a.choices.end(), word) != a.choices.end()) return absl::OkStatus();
  return env.Fail("attribute ", a.name, " is '", word.substr(0, 40), "' but must be one of ",
                  absl::StrJoin(a.choices, ", "));
}

absl::Status TakeWord(const Env& env, const AttrDef& a, const AttrValue& v, Val* out) {
  if (v.kind != KindOf(a.type)) return WrongKind(env, a, v);
  if (a.type == AttrDef::kEnum) RETURN_IF_ERROR(TakeChoice(env, a, v.s));
  if (a.type == AttrDef::kDType && (v.i <= 0 || v.i >= static_cast<int64_t>(DType::kCount)))
    return env.Fail("attribute ", a.name, " is not a dtype");
  if (a.type == AttrDef::kDType && !a.storage && IsStorage(static_cast<DType>(v.i)))
    return Annotate(env.Fail("attribute ", a.name, " is ", Name(static_cast<DType>(v.i)),
                             ", a storage dtype, which only cast makes"),
                    kErrorHint, "make another dtype, then cast it");
  out->kind = a.type == AttrDef::kBool ? Val::kBool : a.type == AttrDef::kDType ? Val::kDType : Val::kStr;
  out->i = a.type == AttrDef::kBool ? v.i != 0 : v.i;
  out->s = v.s;
  return absl::OkStatus();
}

absl::Status TakeFloats(const Env& env, const AttrDef& a, const AttrValue& v, Val* out) {
  if (a.type == AttrDef::kF64) {
    if (v.kind != KEEL_ATTR_F64 && (v.kind != KEEL_ATTR_I64 || IsSymbolic(v.i))) return WrongKind(env, a, v);
    return out->SetFloat(v.kind == KEEL_ATTR_F64 ? v.f : static_cast<double>(v.i));
  }
  if (v.kind != KEEL_ATTR_F64S && !(IsList(v) && v.list.empty())) return WrongKind(env, a, v);
  if (v.floats.size() > kMaxList)
    return env.Fail("attribute ", a.name, " has more than ", kMaxList, " entries");
  out->kind = Val::kFloats;
  out->floats = v.floats;
  return absl::OkStatus();
}

// One or an entry per dim of a group.
absl::Status TakeEach(const Env& env, const AttrDef& a, const AttrValue& v, Val* out) {
  return IsScalar(v) ? TakeScalar(env, a, v, out) : TakeList(env, a, v, out);
}

// The number of a graph or variable; numbers of graphs.
absl::Status TakeNumber(const Env& env, const AttrDef& a, const AttrValue& v, Val* out) {
  if (v.kind != KindOf(a.type)) return WrongKind(env, a, v);
  return out->Set(Val::kInt, v.i);
}
absl::Status TakeNumbers(const Env& env, const AttrDef& a, const AttrValue& v, Val* out) {
  if (v.kind != KindOf(a.type)) return WrongKind(env, a, v);
  if (v.list.size() > kMaxList)
    return env.Fail("attribute ", a.name, " has more than ", kMaxList, " entries");
  return out->SetList(List(v.list.begin(), v.list.end()));
}

// One row per AttrDef::Type, in enum order.
struct TypeRow {
  int32_t kind;  // after inference
  absl::Status (*take)(const Env&, const AttrDef&, const AttrValue&, Val*);
  bool grouped = false;  // resolved after the operands are matched
};
constexpr TypeRow kTypes[] = {
    {KEEL_ATTR_BOOL, TakeWord},        {KEEL_ATTR_I64, TakeScalar},     {KEEL_ATTR_F64, TakeFloats},
    {KEEL_ATTR_STR, TakeWord},         {KEEL_ATTR_DTYPE, TakeWord},     {KEEL_ATTR_DIM, TakeScalar},
    {KEEL_ATTR_STR, TakeWord},         // kEnum
    {KEEL_ATTR_I64S, TakeEach, true},  // kI64Each
    {KEEL_ATTR_DIMS, TakeEach, true},  // kDimEach
    {KEEL_ATTR_I64S, TakeList},        {KEEL_ATTR_DIMS, TakeList},      {KEEL_ATTR_F64S, TakeFloats},
    {KEEL_ATTR_DIMS, TakeList, true},   // kShape
    {KEEL_ATTR_I64, TakeScalar},        // kAxis
    {KEEL_ATTR_I64, TakeScalar, true},  // kAxisOf
    {KEEL_ATTR_I64S, TakeEach, true},   // kAxesOf
    {KEEL_ATTR_I64S, TakeList, true},   // kPermOf
    {KEEL_ATTR_I64, TakeScalar},        // kRankOf
    {KEEL_ATTR_GRAPH, TakeNumber},     {KEEL_ATTR_GRAPHS, TakeNumbers}, {KEEL_ATTR_VAR, TakeNumber}};
static_assert(std::size(kTypes) == AttrDef::kVar + 1);

absl::Status TakeDefault(Env& env, const AttrDef& a, Val* out) {
  if (!a.has_default) return env.Fail("attribute ", a.name, " (", a.type_text, ") must be given");
  if (a.type == AttrDef::kEnum) {
    out->kind = Val::kStr;
    out->s = a.default_value.text;
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(Eval(a.default_value, env, out));
  if (a.type == AttrDef::kF64 && out->kind == Val::kInt) {
    out->kind = Val::kFloat;
    out->f = static_cast<double>(out->i);
  }
  if (a.type == AttrDef::kF64List && out->kind == Val::kList && out->list.empty()) out->kind = Val::kFloats;
  return absl::OkStatus();
}

// Checks that a default has the kind that ExportAttrs expects. (Given values are checked by Take.)
absl::Status CheckForm(const Env& env, const AttrDef& a, const Val& v) {
  constexpr Val::Kind kForms[] = {Val::kNone,  Val::kBool, Val::kInt,  Val::kFloat,  Val::kStr,
                                  Val::kDType, Val::kInt,  Val::kList, Val::kFloats, Val::kList,
                                  Val::kInt,   Val::kInt,  Val::kList};  // by KEEL_ATTR_*
  const Val::Kind want = kForms[KindOf(a.type)];
  if (v.kind != want) return env.Fail("the default of attribute ", a.name, " is not ", a.type_text);
  if (a.type == AttrDef::kRankOf && (v.i < 0 || v.i > KEEL_MAX_RANK))
    return env.Fail("attribute ", a.name, " is not in [0, ", KEEL_MAX_RANK, "]");
  if (v.kind == Val::kInt) return CheckEntry(env, a, v.i);
  if (v.kind == Val::kList)
    for (int64_t entry : v.list) RETURN_IF_ERROR(CheckEntry(env, a, entry));
  return absl::OkStatus();
}

absl::Status UnknownAttr(const Env& env, const Attrs& given) {
  std::string names;
  for (uint16_t k : env.def.attrs_by_name)
    absl::StrAppend(&names, names.empty() ? "" : ", ", env.def.attrs[k].name);
  for (size_t i = 0; i < given.size(); i++) {
    bool known = false;
    for (const AttrDef& a : env.def.attrs) known |= a.name == given[i].name;
    if (!known)
      return env.Fail("has no attribute '", given[i].name.substr(0, 80), "'; ",
                      names.empty() ? "it has none" : "it has ", names);
    for (size_t k = 0; k < i; k++)
      if (given[k].name == given[i].name) return env.Fail("attribute ", given[i].name, " is given twice");
  }
  return env.Fail("its attributes could not be matched");
}

absl::Status SettleAxes(const Env& env, const AttrDef& a, int64_t rank, Val* v) {
  if (v->kind == Val::kInt) {
    v->kind = Val::kList;
    v->list.assign(1, v->i);
  }
  for (int64_t& axis : v->list) RETURN_IF_ERROR(NormaliseAxis(env, a.name, rank, &axis));
  List sorted = v->list;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    return env.Fail("attribute ", a.name, " names an axis twice");
  if (a.type == AttrDef::kAxesOf)
    v->list = std::move(sorted);
  else if (static_cast<int64_t>(sorted.size()) != rank)
    return env.Fail("attribute ", a.name, " has ", sorted.size(), " entries but the operand has ", rank,
                    " dims");
  return absl::OkStatus();
}

absl::Status SettleEach(const Env& env, const AttrDef& a, size_t rank, Val* v) {
  if (v->kind == Val::kInt) {
    v->kind = Val::kList;
    v->list.assign(rank, v->i);
  }
  if (v->list.size() == rank) return absl::OkStatus();
  return env.Fail("attribute ", a.name, " has ", v->list.size(), " entries but ", a.group_name, " has ", rank,
                  " dims");
}

// Matches the list like an operand.
absl::Status SettleShape(Env& env, const AttrDef& a, Val* v) {
  if (v->list.size() > KEEL_MAX_RANK)
    return env.Fail("attribute ", a.name, " has more than ", KEEL_MAX_RANK, " dims");
  for (int64_t d : v->list)
    if (!IsSymbolic(d) && (d < 0 || d > kMaxDim))
      return env.Fail("attribute ", a.name, " has dim ", d, ", which is not in [0, 2^40]");
  List copy = v->list;
  return MatchItems(env, a.shape, copy, -1, a.name);
}

}  // namespace

int32_t KindOf(AttrDef::Type type) { return kTypes[type].kind; }
bool NeedsGroup(AttrDef::Type type) { return kTypes[type].grouped; }

absl::Status BindAttrs(Env& env, const Attrs& given) {
  size_t used = 0;
  for (const AttrDef& a : env.def.attrs) {
    Val* v = &env.slots[a.slot];
    if (const AttrValue* g = given.empty() ? nullptr : FindAttr(given, a.name)) {
      used++;
      RETURN_IF_ERROR(kTypes[a.type].take(env, a, *g, v));
    } else if (!NeedsGroup(a.type)) {
      RETURN_IF_ERROR(TakeDefault(env, a, v));
    }
    if (!NeedsGroup(a.type)) RETURN_IF_ERROR(CheckForm(env, a, *v));
  }
  return used == given.size() ? absl::OkStatus() : UnknownAttr(env, given);
}

absl::Status SettleAttrs(Env& env) {
  for (const AttrDef& a : env.def.attrs) {
    if (!NeedsGroup(a.type)) continue;
    Val* v = &env.slots[a.slot];
    if (v->kind == Val::kNone) {
      Val fresh;
      RETURN_IF_ERROR(TakeDefault(env, a, &fresh));
      *v = std::move(fresh);
    }
    if (v->kind != Val::kInt && v->kind != Val::kList)
      return env.Fail("the default of attribute ", a.name, " is not ", a.type_text);
    if (a.type == AttrDef::kShape) {
      RETURN_IF_ERROR(CheckForm(env, a, *v));
      RETURN_IF_ERROR(SettleShape(env, a, v));
      continue;
    }
    const Val& group = env.slots[a.group];
    if (group.kind != Val::kList)
      return env.Fail("attribute ", a.name, " belongs to ", a.group_name, ", which is omitted");
    size_t rank = group.list.size();
    if (a.type == AttrDef::kAxisOf)
      RETURN_IF_ERROR(v->kind == Val::kInt ? NormaliseAxis(env, a.name, static_cast<int64_t>(rank), &v->i)
                                           : env.Fail("attribute ", a.name, " must be one axis"));
    else if (a.type == AttrDef::kAxesOf || a.type == AttrDef::kPermOf)
      RETURN_IF_ERROR(SettleAxes(env, a, static_cast<int64_t>(rank), v));
    else
      RETURN_IF_ERROR(SettleEach(env, a, rank, v));
    RETURN_IF_ERROR(CheckForm(env, a, *v));
  }
  return absl::OkStatus();
}

void ExportAttrs(const Env& env, Attrs* out) {
  const OpDef& def = env.def;
  out->resize(def.attrs.size());
  for (size_t i = 0; i < def.attrs.size(); i++) {
    const AttrDef& a = def.attrs[def.attrs_by_name[i]];
    const Val& v = env.slots[a.slot];
    Attr& to = (*out)[i];
    to.name = a.name;
    Export(v, KindOf(a.type), &to.value);
  }
}

void Export(const Val& v, int32_t kind, AttrValue* to) {
  to->kind = kind;
  to->i = v.kind == Val::kInt || v.kind == Val::kBool || v.kind == Val::kDType ? v.i : 0;
  to->f = v.kind == Val::kFloat ? v.f : kind == KEEL_ATTR_F64 ? static_cast<double>(v.i) : 0;
  to->s.assign(v.s);
  to->list.clear();
  if (v.kind == Val::kList) to->list.assign(v.list.begin(), v.list.end());
  to->floats.assign(v.floats.begin(), v.floats.end());
}

}  // namespace keel::opset
