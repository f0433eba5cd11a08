// match.cc: matches operands with their patterns. A name binds at its first use and is compared afterwards.

#include <algorithm>

#include "kernel/language/opset/arith.h"
#include "kernel/language/opset/infer_internal.h"

namespace keel::opset {
namespace {

std::string Subject(const Env& env, int operand, std::string_view name) {
  return operand >= 0 ? env.OperandName(static_cast<size_t>(operand)) : std::string(name);
}

// The operand or attribute that bound a slot, for messages.
std::string Binder(const Env& env, uint16_t slot) {
  int by = env.bound_by[slot];
  if (by >= 0) return env.OperandName(static_cast<size_t>(by));
  return VarAttr(env.def).empty() ? "an attribute" : "the variable";
}

// Compares a dim with the bound one and keeps the more specific of both.
absl::Status Unify(Env& env, int64_t* have, int64_t got, uint16_t slot, int operand, std::string_view name) {
  if (*have == got) return absl::OkStatus();
  Truth equal = CompareDims(env, BinOp::kEq, *have, got);
  auto text = [&](std::string_view but) {
    return absl::StrCat(Subject(env, operand, name), " has ", env.def.slots[slot], " = ", env.Print(got), but,
                        Binder(env, slot), " has ", env.def.slots[slot], " = ", env.Print(*have));
  };
  if (equal == Truth::kFalse) return env.FailWith(text(" but "));
  if (equal == Truth::kUnknown) env.AddCheck(*have, got, true, text(", "));
  if (!IsSymbolic(got)) *have = got;
  return absl::OkStatus();
}

absl::Status RequireDim(Env& env, int64_t want, int64_t got, int operand, std::string_view name) {
  Truth equal = CompareDims(env, BinOp::kEq, want, got);
  if (equal == Truth::kTrue) return absl::OkStatus();
  std::string text = absl::StrCat(Subject(env, operand, name), " has dim ", env.Print(got), " where ",
                                  env.Print(want), " is expected");
  if (equal == Truth::kFalse) return env.FailWith(std::move(text));
  env.AddCheck(want, got, true, std::move(text));
  return absl::OkStatus();
}

absl::Status RankError(const Env& env, const Pattern& p, size_t rank, int operand, std::string_view name) {
  return env.Fail(Subject(env, operand, name), " has ", rank, " dims, which do not fit ",
                  p.text.empty() ? "its pattern" : p.text);
}

using Lengths = absl::InlinedVector<int64_t, 8>;
constexpr int64_t kOpen = -1;  // a group whose length follows from the rank

absl::Status ItemLength(Env& env, const Item& item, int64_t* length) {
  *length = item.kind == Item::kMark ? 0 : 1;
  if (item.kind == Item::kGroup) {
    uint16_t sized_by = env.def.group_length[item.slot];
    const Val& v = env.slots[item.slot];
    if (v.kind != Val::kNone)
      *length = v.kind == Val::kList ? static_cast<int64_t>(v.list.size()) : 1;
    else
      *length = sized_by == kNoSlot ? kOpen : env.slots[sized_by].i;
  } else if (item.kind == Item::kSplice) {
    List list;
    RETURN_IF_ERROR(EvalList(item.expr, env, &list));
    *length = static_cast<int64_t>(list.size());
  }
  return absl::OkStatus();
}

// '@' gives the number of dims before it, and thus the length of the open group there.
absl::Status PlaceAxis(Env& env, const Pattern& p, int64_t rank, Lengths* lengths) {
  size_t mark = 0;
  while (!p.items[mark].marked) mark++;
  const Item& item = p.items[mark];
  int64_t positions = item.kind == Item::kMark ? rank + 1 : rank;
  if (item.kind == Item::kGroup) positions = rank - std::max<int64_t>((*lengths)[mark], 0) + 1;
  RETURN_IF_ERROR(NormaliseAxis(env, p.axis_name, positions, &env.slots[p.axis].i));
  int64_t left = env.slots[p.axis].i, *open = nullptr;
  for (size_t k = 0; k < mark; k++) {
    if ((*lengths)[k] == kOpen)
      open = &(*lengths)[k];
    else
      left -= (*lengths)[k];
  }
  if (open && left >= 0)
    *open = left;
  else if (left != 0)
    return env.Fail(p.axis_name, " = ", env.slots[p.axis].i, " does not fit ", p.text);
  return absl::OkStatus();
}

absl::Status MeasureItems(Env& env, const Pattern& p, int64_t rank, Lengths* lengths, bool* fits) {
  lengths->resize(p.items.size());
  for (size_t k = 0; k < p.items.size(); k++) RETURN_IF_ERROR(ItemLength(env, p.items[k], &(*lengths)[k]));
  if (p.axis != kNoSlot) RETURN_IF_ERROR(PlaceAxis(env, p, rank, lengths));
  int64_t left = rank, *open = nullptr;
  for (int64_t& length : *lengths) {
    if (length == kOpen)
      open = &length;
    else
      left -= length;
  }
  *fits = open ? left >= 0 : left == 0;
  if (open && *fits) *open = left;
  for (int64_t length : *lengths)
    *fits = *fits && length >= 0;  // two open groups: an optional operand was omitted
  return absl::OkStatus();
}

absl::Status BindGroup(Env& env, const Item& item, std::span<const int64_t> dims, int operand,
                       std::string_view name) {
  Val& v = env.slots[item.slot];
  if (v.kind == Val::kNone) {
    v.kind = Val::kList;
    v.list.assign(dims.begin(), dims.end());
    env.bound_by[item.slot] = static_cast<int16_t>(operand);
    return absl::OkStatus();
  }
  if (v.kind != Val::kList)
    return env.Fail("'", env.def.slots[item.slot], "' is a group here but was one dim");
  for (size_t d = 0; d < dims.size(); d++)
    RETURN_IF_ERROR(Unify(env, &v.list[d], dims[d], item.slot, operand, name));
  return absl::OkStatus();
}

absl::Status BindDim(Env& env, const Item& item, int64_t dim, int operand, std::string_view name) {
  Val& v = env.slots[item.slot];
  if (item.kind == Item::kCollect) {
    v.kind = Val::kList;
    v.list.push_back(dim);
  } else if (v.kind == Val::kNone) {
    v.kind = Val::kInt;
    v.i = dim;
  } else if (v.kind == Val::kInt) {
    return Unify(env, &v.i, dim, item.slot, operand, name);
  } else {
    return env.Fail("'", env.def.slots[item.slot], "' is one dim here but was a list");
  }
  env.bound_by[item.slot] = static_cast<int16_t>(operand);
  return absl::OkStatus();
}

absl::Status BindExpr(Env& env, const Item& item, std::span<const int64_t> dims, int operand,
                      std::string_view name) {
  List want;
  RETURN_IF_ERROR(EvalList(item.expr, env, &want));
  for (size_t d = 0; d < dims.size() && d < want.size(); d++)
    RETURN_IF_ERROR(RequireDim(env, want[d], dims[d], operand, name));
  return absl::OkStatus();
}

std::string SetText(DTypeSet set) {
  std::string out;
  for (unsigned d = 1; d < static_cast<unsigned>(DType::kCount); d++)
    if (set & Bit(static_cast<DType>(d)))
      absl::StrAppend(&out, out.empty() ? "" : ", ", keel::Name(static_cast<DType>(d)));
  return out;
}

// operand: -1 is the variable.
std::string TypedThing(const Env& env, int operand) { return Subject(env, operand, "the variable"); }

absl::Status DTypeClash(const Env& env, DType got, DType want, std::string_view why, int operand) {
  absl::Status status =
      env.Fail(TypedThing(env, operand), " is ", keel::Name(got), " but ", why, keel::Name(want));
  return Annotate(std::move(status), kErrorHint,
                  absl::StrCat("if the conversion is intended, write cast(x){to=", keel::Name(want), "}"));
}

absl::Status DTypeOutside(const Env& env, DType got, DTypeSet set, int operand) {
  absl::Status status =
      env.Fail(TypedThing(env, operand), " is ", keel::Name(got), " but must be one of ", SetText(set));
  if (!IsStorage(got)) return status;
  return Annotate(std::move(status), kErrorHint,
                  absl::StrCat(keel::Name(got), " only stores values: compute with cast(x){to=f32}, say"));
}

absl::Status BindDType(Env& env, const Pattern& p, DType got, int operand) {
  const DTypeRef& ref = p.dtype;
  if (ref.kind == DTypeRef::kFixed)
    return got == ref.fixed ? absl::OkStatus() : DTypeClash(env, got, ref.fixed, "must be ", operand);
  if (ref.kind == DTypeRef::kAttr) {
    auto want = static_cast<DType>(env.slots[ref.index].i);
    return got == want ? absl::OkStatus() : DTypeClash(env, got, want, "the attribute is ", operand);
  }
  DType& bound = env.types[ref.index];
  if (bound == DType::kNone) {
    const TypeVar& var = env.def.types[ref.index];
    if (!(var.set & Bit(got))) return DTypeOutside(env, got, var.set, operand);
    bound = got;
    env.type_bound_by[ref.index] = static_cast<int16_t>(operand);
  } else if (bound != got) {
    return DTypeClash(env, got, bound, TypedThing(env, env.type_bound_by[ref.index]) + " is ", operand);
  }
  return absl::OkStatus();
}

const Pattern& PatternOf(const Env& env, const OperandDef& o) {
  return o.condition == kNoSlot ? o.patterns[0] : o.patterns[env.slots[o.condition].i ? 0 : 1];
}

absl::Status CheckType(const Env& env, size_t index) {
  const TensorType& type = env.operands[index].type;
  if (type.dtype == DType::kNone || type.dtype >= DType::kCount)
    return env.Fail(env.OperandName(index), " has no dtype");
  if (type.dims.size() > KEEL_MAX_RANK)
    return env.Fail(env.OperandName(index), " has ", type.dims.size(), " dims, more than ", KEEL_MAX_RANK);
  for (Dim d : type.dims)
    if (IsSymbolic(d) ? !env.dims.Contains(d) : d < 0 || d > kMaxDim)
      return env.Fail(env.OperandName(index), " has a dim that is not in [0, 2^40]");
  return absl::OkStatus();
}

}  // namespace

absl::Status NormaliseAxis(const Env& env, std::string_view name, int64_t positions, int64_t* axis) {
  if (*axis < -positions || *axis >= positions)
    return env.Fail(name, " = ", *axis, " is not in [", -positions, ", ", positions, ")");
  if (*axis < 0) *axis += positions;
  return absl::OkStatus();
}

absl::Status MatchItems(Env& env, const Pattern& p, std::span<const int64_t> dims, int operand,
                        std::string_view name) {
  Lengths lengths;
  bool fits = false;
  RETURN_IF_ERROR(MeasureItems(env, p, static_cast<int64_t>(dims.size()), &lengths, &fits));
  if (!fits) return RankError(env, p, dims.size(), operand, name);
  size_t at = 0;
  for (size_t k = 0; k < p.items.size(); k++) {
    const Item& item = p.items[k];
    std::span<const int64_t> mine = dims.subspan(at, static_cast<size_t>(lengths[k]));
    at += mine.size();
    switch (item.kind) {
      case Item::kMark:
        break;
      case Item::kNumber:
        RETURN_IF_ERROR(RequireDim(env, item.number, mine[0], operand, name));
        break;
      case Item::kGroup:
        RETURN_IF_ERROR(BindGroup(env, item, mine, operand, name));
        break;
      case Item::kName:
      case Item::kCollect:
        RETURN_IF_ERROR(BindDim(env, item, mine[0], operand, name));
        break;
      default:
        RETURN_IF_ERROR(BindExpr(env, item, mine, operand, name));
    }
  }
  return absl::OkStatus();
}

absl::Status MatchVariable(Env& env, const AttrDef& a, const TensorType& type) {
  if (a.shape.dtype.kind == DTypeRef::kVariable) RETURN_IF_ERROR(BindDType(env, a.shape, type.dtype, -1));
  return MatchItems(env, a.shape, type.dims, -1, a.name);
}

absl::Status MatchOperands(Env& env) {
  const OpDef& def = env.def;
  size_t count = env.operands.size();
  if (count > def.operands.size() && !def.has_variadic)
    return env.Fail("takes ", def.operands.size(), " operands, got ", count);
  if (count > kMaxList) return env.Fail("more than ", kMaxList, " operands");
  bool any_number = def.typed_by != kNoSlot || def.control || def.effect != EffectKind::kNone;
  size_t least = def.required_operands + (def.has_variadic && !any_number ? 1 : 0);
  if (count < least)
    return env.Fail("takes ", def.has_variadic ? "at least " : "", least, " operands, got ", count);
  for (size_t i = 0; i < count; i++) {
    const OperandDef& o = OperandAt(def, i);
    if (env.operands[i].kind == Operand::kAbsent) {
      if (!o.optional) return env.Fail(o.name, " must be given");
      continue;
    }
    if (env.operands[i].kind == Operand::kTyped) RETURN_IF_ERROR(CheckType(env, i));
    const Pattern& p = PatternOf(env, o);
    if (p.any) continue;
    static const Dims kScalar;
    const Dims& dims = env.operands[i].kind == Operand::kTyped ? env.operands[i].type.dims : kScalar;
    if (env.operands[i].kind == Operand::kTyped)
      RETURN_IF_ERROR(BindDType(env, p, env.operands[i].type.dtype, static_cast<int>(i)));
    RETURN_IF_ERROR(MatchItems(env, p, dims, static_cast<int>(i), o.name));
  }
  return absl::OkStatus();
}

namespace {

// The dtype of a literal that no operand determines: i32 or f32, or else a dtype that the op accepts.
DType FreeLiteral(DTypeSet set, bool floating) {
  constexpr DType kInts[] = {DType::kI32, DType::kI64, DType::kF32, DType::kU64, DType::kF64, DType::kBool};
  constexpr DType kFloats[] = {DType::kF32, DType::kF64, DType::kBF16, DType::kF16};
  for (DType d :
       std::span<const DType>(floating ? std::span<const DType>(kFloats) : std::span<const DType>(kInts)))
    if (set & Bit(d)) return d;
  return DType::kNone;
}

bool IsWeak(const Operand& o) { return o.kind == Operand::kWeakInt || o.kind == Operand::kWeakFloat; }

absl::Status BindFreeTypes(Env& env) {
  for (bool floating : {true, false})  // one float literal makes the others floats
    for (size_t i = 0; i < env.operands.size(); i++) {
      if (env.operands[i].kind != (floating ? Operand::kWeakFloat : Operand::kWeakInt)) continue;
      const Pattern& p = PatternOf(env, OperandAt(env.def, i));
      if (p.any || p.dtype.kind != DTypeRef::kVariable || env.types[p.dtype.index] != DType::kNone) continue;
      DTypeSet set = env.def.types[p.dtype.index].set;
      DType d = FreeLiteral(set, floating);
      if (d == DType::kNone)
        return env.Fail(env.OperandName(i), " is a literal that fits none of ", SetText(set));
      env.types[p.dtype.index] = d;
      env.type_bound_by[p.dtype.index] = static_cast<int16_t>(i);
    }
  return absl::OkStatus();
}

}  // namespace

absl::Status MatchWeak(Env& env, std::vector<DType>* operand_dtypes) {
  operand_dtypes->resize(env.operands.size());
  bool any = false;
  for (size_t i = 0; i < env.operands.size(); i++) {
    any |= IsWeak(env.operands[i]);
    (*operand_dtypes)[i] =
        env.operands[i].kind == Operand::kTyped ? env.operands[i].type.dtype : DType::kNone;
  }
  if (!any) return absl::OkStatus();
  RETURN_IF_ERROR(BindFreeTypes(env));
  for (size_t i = 0; i < env.operands.size(); i++) {
    if (!IsWeak(env.operands[i])) continue;
    bool floating = env.operands[i].kind == Operand::kWeakFloat;
    const Pattern& p = PatternOf(env, OperandAt(env.def, i));
    DType d = floating ? DType::kF32 : DType::kI32;
    if (!p.any && p.dtype.kind == DTypeRef::kFixed) d = p.dtype.fixed;
    if (!p.any && p.dtype.kind == DTypeRef::kVariable) d = env.types[p.dtype.index];
    if (!p.any && p.dtype.kind == DTypeRef::kAttr) d = static_cast<DType>(env.slots[p.dtype.index].i);
    if (floating && !IsFloating(d)) {
      absl::Status status =
          env.Fail(env.OperandName(i), " is a float literal but ", keel::Name(d), " is expected");
      return Annotate(std::move(status), kErrorHint,
                      absl::StrCat("cast the other operand to a float, or write an integer literal"));
    }
    (*operand_dtypes)[i] = d;
  }
  return absl::OkStatus();
}

}  // namespace keel::opset
