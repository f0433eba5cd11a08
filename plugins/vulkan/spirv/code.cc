// code.cc: see code.h.
#include "code.h"

#include <bit>

namespace keel_spirv {
namespace {

constexpr uint32_t kAligned = 2;

Value Arithmetic(Opcode on_float, Opcode on_integer, Value a, Value b) {
  const Value v = a.code->Binary(a.IsFloat() ? on_float : on_integer, a, b);
  if (a.IsFloat()) a.code->module.Decorate(v.id, {kNoContraction});
  return v;
}
Value Compare(Opcode on_float, Opcode on_integer, Value a, Value b) {
  return a.code->Binary(a.IsFloat() ? on_float : on_integer, Reg::kBool, a, b);
}
Value Logic(Opcode on_bool, Opcode on_integer, Value a, Value b) {
  return a.code->Binary(a.reg == Reg::kBool ? on_bool : on_integer, a, b);
}
Value Same(Opcode on_bool, Opcode on_float, Opcode on_integer, Value a, Value b) {
  return a.reg == Reg::kBool ? a.code->Binary(on_bool, a, b) : Compare(on_float, on_integer, a, b);
}

}  // namespace

Id Code::TypeOf(Reg reg) {
  switch (reg) {
    case Reg::kBool:
      return module.Bool();
    case Reg::kU32:
      return module.Unsigned(32);
    case Reg::kU64:
      return module.Unsigned(64);
    case Reg::kF32:
      return module.Float(32);
    case Reg::kF64:
      return module.Float(64);
  }
  return 0;
}

Value Code::Integer(Reg reg, uint64_t value) {
  const uint32_t low = static_cast<uint32_t>(value), high = static_cast<uint32_t>(value >> 32);
  return {this, module.Constant(TypeOf(reg), reg == Reg::kU64 ? Words{low, high} : Words{low}), reg};
}
Value Code::Literal(Reg reg, double value) {
  if (reg == Reg::kF32)
    return {this, module.Constant(TypeOf(reg), {std::bit_cast<uint32_t>(static_cast<float>(value))}), reg};
  if (reg != Reg::kF64)
    return Integer(
        reg, value < 0 ? static_cast<uint64_t>(static_cast<int64_t>(value)) : static_cast<uint64_t>(value));
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  return {this,
          module.Constant(TypeOf(reg), {static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32)}),
          reg};
}

Value Code::Unary(Opcode op, Reg result, Value a) {
  return {this, module.Emit(op, TypeOf(result), {a.id}), result};
}
Value Code::Binary(Opcode op, Reg result, Value a, Value b) {
  return {this, module.Emit(op, TypeOf(result), {a.id, b.id}), result};
}

// By way of a struct: GPU-assisted validation checks such accesses only.
Id Code::Pointer(Value address, Id type) {
  const Id block = module.Pointer(kPhysicalStorageBuffer, module.Block(type));
  const Id base = module.Emit(kConvertUToPtr, block, {address.id});
  return module.Emit(kAccessChain, module.Pointer(kPhysicalStorageBuffer, type), {base, module.U32(0)});
}
Value Code::Load(Value address, uint32_t bits, Reg reg) {
  const bool narrow = bits < 32;
  const Id type = narrow ? module.Unsigned(bits) : TypeOf(reg);
  const Id loaded = module.Emit(kLoad, type, {Pointer(address, type), kAligned, bits / 8});
  return narrow ? Value{this, module.Emit(kUConvert, TypeOf(Reg::kU32), {loaded}), Reg::kU32}
                : Value{this, loaded, reg};
}
void Code::Store(Value address, uint32_t bits, Value value) {
  const bool narrow = bits < 32;
  const Id type = narrow ? module.Unsigned(bits) : TypeOf(value.reg);
  const Id stored = narrow ? module.Emit(kUConvert, type, {value.id}) : value.id;
  module.Do(kStore, {Pointer(address, type), stored, kAligned, bits / 8});
}

void Code::If(Value condition, const std::function<void()>& then) {
  const Id inside = module.New(), after = module.New();
  module.Do(kSelectionMerge, {after, 0});
  module.Do(kBranchConditional, {condition.id, inside, after});
  module.Label(inside);
  then();
  module.Do(kBranch, {after});
  module.Label(after);
}

Code::State Code::While(const State& first, const std::function<Value(const State&)>& test,
                        const std::function<State(const State&)>& next) {
  const Id header = module.New(), check = module.New(), body = module.New(), again = module.New(),
           after = module.New(), before = module.Block();
  module.Do(kBranch, {header});
  module.Label(header);
  std::vector<size_t> at(first.size());
  State state = first;
  for (size_t i = 0; i < first.size(); i++)
    state[i].id = module.Phi(TypeOf(first[i].reg), first[i].id, before, &at[i]);
  module.Do(kLoopMerge, {after, again, 0});
  module.Do(kBranch, {check});
  module.Label(check);
  const Value more = test(state);
  module.Do(kBranchConditional, {more.id, body, after});
  module.Label(body);
  const State changed = next(state);
  module.Do(kBranch, {again});
  module.Label(again);
  module.Do(kBranch, {header});
  for (size_t i = 0; i < first.size(); i++) module.SetPhi(at[i], changed[i].id, again);
  module.Label(after);
  return state;
}

Value operator+(Value a, Value b) { return Arithmetic(kFAdd, kIAdd, a, b); }
Value operator-(Value a, Value b) { return Arithmetic(kFSub, kISub, a, b); }
Value operator*(Value a, Value b) { return Arithmetic(kFMul, kIMul, a, b); }
Value operator/(Value a, Value b) { return Arithmetic(kFDiv, kUDiv, a, b); }
Value operator%(Value a, Value b) { return a.code->Binary(kUMod, a, b); }
Value operator-(Value a) { return a.code->Unary(a.IsFloat() ? kFNegate : kSNegate, a); }
Value operator==(Value a, Value b) { return Same(kLogicalEqual, kFOrdEqual, kIEqual, a, b); }
Value operator!=(Value a, Value b) { return Same(kLogicalNotEqual, kFUnordNotEqual, kINotEqual, a, b); }
Value operator<(Value a, Value b) { return Compare(kFOrdLessThan, kULessThan, a, b); }
Value operator>(Value a, Value b) { return Compare(kFOrdGreaterThan, kUGreaterThan, a, b); }
Value operator<=(Value a, Value b) { return Compare(kFOrdLessThanEqual, kULessThanEqual, a, b); }
Value operator>=(Value a, Value b) { return Compare(kFOrdGreaterThanEqual, kUGreaterThanEqual, a, b); }
Value operator&(Value a, Value b) { return Logic(kLogicalAnd, kBitwiseAnd, a, b); }
Value operator|(Value a, Value b) { return Logic(kLogicalOr, kBitwiseOr, a, b); }
Value operator^(Value a, Value b) { return Logic(kLogicalNotEqual, kBitwiseXor, a, b); }
Value operator~(Value a) { return a.code->Unary(kNot, a); }
Value operator!(Value a) { return a.code->Unary(kLogicalNot, a); }
Value operator<<(Value a, Value b) { return a.code->Binary(kShiftLeftLogical, a, b); }
Value operator>>(Value a, Value b) { return a.code->Binary(kShiftRightLogical, a, b); }

Value Select(Value c, Value a, Value b) {
  return {a.code, a.code->module.Emit(kSelect, a.code->TypeOf(a.reg), {c.id, a.id, b.id}), a.reg};
}
Value SignedLess(Value a, Value b) { return a.code->Binary(kSLessThan, Reg::kBool, a, b); }
Value ShiftArithmetic(Value a, Value b) { return a.code->Binary(kShiftRightArithmetic, a, b); }
Value Bits(Value x) { return x.code->Unary(kBitcast, x.IsWide() ? Reg::kU64 : Reg::kU32, x); }
Value FromBits(Value x) { return x.code->Unary(kBitcast, x.IsWide() ? Reg::kF64 : Reg::kF32, x); }
Value Widen(Value x) { return x.code->Unary(kUConvert, Reg::kU64, x); }
Value WidenSigned(Value x) { return x.code->Unary(kSConvert, Reg::kU64, x); }
Value Narrow(Value x) { return x.code->Unary(kUConvert, Reg::kU32, x); }
// lavapipe takes the FAbs of a square root for the root, which may be -0.
Value Abs(Value x) {
  const Value bits = Bits(x);
  const uint64_t all = bits.IsWide() ? ~uint64_t{0} : ~uint32_t{0};
  return FromBits(bits & bits.code->Integer(bits.reg, all >> 1));
}
Value Floor(Value x) { return x.code->Ext(kFloor, x); }
Value CopySign(Value magnitude, Value sign) {
  const Value m = Bits(magnitude), s = Bits(sign);
  const Value mask = m.code->Integer(m.reg, m.IsWide() ? uint64_t{1} << 63 : uint64_t{1} << 31);
  return FromBits((m & ~mask) | (s & mask));
}
Value IsNan(Value x) {
  const Value b = Bits(x);
  const bool wide = b.IsWide();
  const Value magnitude = b & b.code->Integer(b.reg, wide ? ~uint64_t{0} >> 1 : 0x7fffffff);
  return magnitude > b.code->Integer(b.reg, wide ? uint64_t{0x7ff} << 52 : 0x7f800000);
}

}  // namespace keel_spirv
