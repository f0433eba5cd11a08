// op_facts.cc: attributes of nodes: constant defaults, and the canonical form.
#include "kernel/language/graph/op_facts.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "kernel/language/graph/element.h"
#include "kernel/language/graph/names.h"

namespace keel {
namespace {

constexpr size_t kMaxAttrs = 64, kMaxAttrBytes = 1 << 20;

AttrValue Scalar(int32_t kind, int64_t i) {
  AttrValue v;
  v.kind = kind;
  v.i = i;
  return v;
}

// A constant default as a value. "0" for a list attribute is a scalar that applies to all entries.
std::optional<AttrValue> ConstantDefault(const AttrInfo& info) {
  std::string_view text = info.default_text;
  AttrValue v;
  v.kind = info.kind;
  auto word = ParseDType(text);
  switch (info.kind) {
    case KEEL_ATTR_BOOL:
      if (text != "true" && text != "false") return std::nullopt;
      return Scalar(info.kind, text == "true");
    case KEEL_ATTR_F64:
      if (ParseElement(DType::kF64, text, &v.f).ok()) return v;
      return std::nullopt;
    case KEEL_ATTR_STR:
      if (text == "\"\"") return v;
      if (std::find(info.choices.begin(), info.choices.end(), text) == info.choices.end())
        return std::nullopt;
      return v.s = text, v;
    case KEEL_ATTR_DTYPE:
      if (word) return Scalar(info.kind, static_cast<int64_t>(*word));
      return std::nullopt;
    default:
      break;
  }
  bool dims = info.kind == KEEL_ATTR_DIMS;
  if (text == "[]") return v;
  if (!ParseElement(DType::kI64, text, &v.i).ok()) return std::nullopt;
  return Scalar(dims ? KEEL_ATTR_DIM : info.kind == KEEL_ATTR_I64S ? KEEL_ATTR_I64 : info.kind, v.i);
}

bool AnyHandle(const AttrValue& v) {
  return IsSymbolic(v.i) || std::any_of(v.list.begin(), v.list.end(), IsSymbolic);
}

// The kind that a value of kind `got` is converted to for an attribute of kind `want`; 0: incompatible.
int32_t Converted(int32_t want, int32_t got, const AttrValue& v) {
  struct Rule {
    int32_t want, got, result;
    bool concrete;
  };
  static constexpr Rule kRules[] = {{KEEL_ATTR_F64, KEEL_ATTR_I64, KEEL_ATTR_F64, true},
                                    {KEEL_ATTR_DIM, KEEL_ATTR_I64, KEEL_ATTR_DIM, true},
                                    {KEEL_ATTR_I64, KEEL_ATTR_DIM, KEEL_ATTR_I64, true},
                                    {KEEL_ATTR_I64S, KEEL_ATTR_I64, KEEL_ATTR_I64, true},
                                    {KEEL_ATTR_I64S, KEEL_ATTR_DIM, KEEL_ATTR_I64, true},
                                    {KEEL_ATTR_I64S, KEEL_ATTR_DIMS, KEEL_ATTR_I64S, true},
                                    {KEEL_ATTR_DIMS, KEEL_ATTR_I64, KEEL_ATTR_DIM, true},
                                    {KEEL_ATTR_DIMS, KEEL_ATTR_DIM, KEEL_ATTR_DIM, false},
                                    {KEEL_ATTR_DIMS, KEEL_ATTR_I64S, KEEL_ATTR_DIMS, true},
                                    {KEEL_ATTR_F64S, KEEL_ATTR_F64, KEEL_ATTR_F64, true},
                                    {KEEL_ATTR_F64S, KEEL_ATTR_I64, KEEL_ATTR_F64, true},
                                    {KEEL_ATTR_F64S, KEEL_ATTR_I64S, KEEL_ATTR_F64S, true}};
  if (want == got) return (got == KEEL_ATTR_I64S || got == KEEL_ATTR_GRAPHS) && AnyHandle(v) ? 0 : want;
  for (const Rule& r : kRules)
    if (r.want == want && r.got == got && !(r.concrete && AnyHandle(v))) return r.result;
  return 0;
}

// Moves the payload to the field for `kind` and clears the others, so that equal values compare equal.
AttrValue Rebuilt(AttrValue&& from, int32_t kind) {
  AttrValue v;
  v.kind = kind;
  bool was_int = from.kind == KEEL_ATTR_I64 || from.kind == KEEL_ATTR_I64S;
  if (kind == KEEL_ATTR_F64) v.f = was_int ? static_cast<double>(from.i) : from.f;
  if (kind == KEEL_ATTR_STR) v.s = std::move(from.s);
  if (kind == KEEL_ATTR_F64S && was_int) v.floats.assign(from.list.begin(), from.list.end());
  if (kind == KEEL_ATTR_F64S && !was_int) v.floats = std::move(from.floats);
  if (kind == KEEL_ATTR_I64S || kind == KEEL_ATTR_DIMS || kind == KEEL_ATTR_GRAPHS)
    v.list = std::move(from.list);
  if (kind == KEEL_ATTR_BOOL || kind == KEEL_ATTR_I64 || kind == KEEL_ATTR_DTYPE || kind == KEEL_ATTR_DIM ||
      kind == KEEL_ATTR_GRAPH || kind == KEEL_ATTR_VAR)
    v.i = from.i;
  return v;
}

absl::Status CheckValue(const OpFacts& op, const AttrInfo& info, const AttrValue& v) {
  auto fail = [&](std::string_view why) {
    return Invalid("attribute '", info.name, "' of ", op.name, " ", why);
  };
  if (v.kind == KEEL_ATTR_BOOL && v.i != 0 && v.i != 1) return fail(absl::StrCat("is a bool but got ", v.i));
  if (v.kind == KEEL_ATTR_DTYPE && (v.i < 1 || v.i >= static_cast<int64_t>(DType::kCount)))
    return fail(absl::StrCat("is not a dtype (number ", v.i, ")"));
  if (v.kind == KEEL_ATTR_STR && !IsUtf8(v.s)) return fail("is not UTF-8");
  if (v.s.size() > kMaxAttrBytes || v.list.size() > kMaxAttrBytes / 8 || v.floats.size() > kMaxAttrBytes / 8)
    return fail(absl::StrCat("is larger than ", kMaxAttrBytes, " bytes"));
  return absl::OkStatus();
}

absl::Status CanonicalValue(const OpFacts& op, const AttrInfo& info, AttrValue* v) {
  int32_t kind = Converted(info.kind, v->kind, *v);
  if (kind == 0)
    return Invalid("attribute '", info.name, "' of ", op.name, " is ", AttrKindName(info.kind), ", got ",
                   AttrKindName(v->kind), AnyHandle(*v) ? " with symbols" : "");
  *v = Rebuilt(std::move(*v), kind);
  return CheckValue(op, info, *v);
}

}  // namespace

const AttrInfo* OpFacts::FindAttr(std::string_view attr) const {
  for (const AttrInfo& info : attrs)
    if (info.name == attr) return &info;
  return nullptr;
}

OpFacts MakeFacts(const OpDef& op) {
  OpFacts facts{std::string(OpName(op)), OpOperands(op), OpAttrs(op), {}, std::string(VarAttr(op))};
  for (const AttrInfo& info : facts.attrs) facts.defaults.push_back(ConstantDefault(info));
  return facts;
}

absl::Status CanonicalAttrs(const OpFacts& op, const DimTable&, Attrs* attrs) {
  if (attrs->empty()) return absl::OkStatus();
  if (attrs->size() > kMaxAttrs)
    return Invalid(op.name, " got ", attrs->size(), " attributes; the limit is ", kMaxAttrs);
  SortAttrs(attrs);
  Attrs kept;
  for (size_t i = 0; i < attrs->size(); i++) {
    Attr& a = (*attrs)[i];
    if (i > 0 && (*attrs)[i - 1].name == a.name)
      return Invalid(op.name, " got attribute '", a.name, "' twice");
    const AttrInfo* info = op.FindAttr(a.name);
    if (!info) {
      auto name = [](std::string* out, const AttrInfo& x) { out->append(x.name); };
      return Invalid(op.name, " has no attribute '", a.name,
                     "'; it has: ", op.attrs.empty() ? "none" : absl::StrJoin(op.attrs, ", ", name));
    }
    RETURN_IF_ERROR(CanonicalValue(op, *info, &a.value));
    const auto& preset = op.defaults[static_cast<size_t>(info - op.attrs.data())];
    if (!preset || !(*preset == a.value)) kept.push_back({a.name, std::move(a.value)});
  }
  *attrs = std::move(kept);
  return absl::OkStatus();
}

absl::Status CheckAttrs(const OpDef& op, Attrs attrs) {
  return CanonicalAttrs(MakeFacts(op), DimTable(), &attrs);
}

const OperandInfo* OperandAt(const OpFacts& op, size_t position, size_t count) {
  for (size_t i = 0; i < op.operands.size(); i++) {
    size_t covers = op.operands[i].variadic ? count - std::min(count, op.operands.size() - 1) : 1;
    if (position < covers) return &op.operands[i];
    position -= covers;
  }
  return nullptr;
}

}  // namespace keel
