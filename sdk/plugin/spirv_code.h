// spirv_code.h: arithmetic on values, written as C++ expressions that append instructions to a module
// (spirv.h).
//
// A Value is a register: bool, u32, u64, f32 or f64. Integers of 32 bits and fewer are u32 registers: signed
// ones sign-extended, unsigned ones zero-extended. f16 and bf16 are f32 registers that hold such a value.
// Operators follow the register: + on floats is OpFAdd, never contracted to a fused multiply-add. Integer
// comparisons, shifts and division have no signed form here; see SignedLess.
#ifndef KEEL_PLUGIN_SPIRV_CODE_H
#define KEEL_PLUGIN_SPIRV_CODE_H
#include <bit>
#include <functional>

#include "spirv.h"

namespace keel::spirv {

enum class Reg : uint8_t { kBool, kU32, kU64, kF32, kF64 };

class Code;
struct Value {
  Code* code = nullptr;
  Id id = 0;
  Reg reg = Reg::kBool;
  bool IsFloat() const { return reg >= Reg::kF32; }
  bool IsWide() const { return reg == Reg::kU64 || reg == Reg::kF64; }
};

class Code {
 public:
  Module module;

  Id TypeOf(Reg reg);
  Value Literal(Reg reg, double value);  // rounded to the register
  Value Integer(Reg reg, uint64_t value);
  Value True(bool value) { return {this, module.BoolConstant(value), Reg::kBool}; }
  Value U32(uint32_t value) { return Integer(Reg::kU32, value); }

  Value Unary(Opcode op, Value a) { return Unary(op, a.reg, a); }
  Value Unary(Opcode op, Reg result, Value a);
  Value Binary(Opcode op, Value a, Value b) { return Binary(op, a.reg, a, b); }
  Value Binary(Opcode op, Reg result, Value a, Value b);
  Value Ext(Extended op, Value a) { return {this, module.Ext(op, TypeOf(a.reg), a.id), a.reg}; }

  // Memory at a 64-bit address; bits is the width of the element.
  Value Load(Value address, uint32_t bits, Reg reg);
  void Store(Value address, uint32_t bits, Value value);

  // Runs `then` where the condition holds.
  void If(Value condition, const std::function<void()>& then);
  // Replaces the state by next(state) while test(state) holds; returns the last state.
  using State = std::vector<Value>;
  State While(const State& first, const std::function<Value(const State&)>& test,
              const std::function<State(const State&)>& next);

 private:
  Id Pointer(Value address, Id type);
};

// ---- operators: both operands have the same register; a number becomes a literal of the other operand's
Value operator+(Value a, Value b);
Value operator-(Value a, Value b);
Value operator*(Value a, Value b);
Value operator/(Value a, Value b);  // unsigned on integers
Value operator%(Value a, Value b);  // unsigned integers
Value operator-(Value a);
Value operator==(Value a, Value b);
Value operator!=(Value a, Value b);
Value operator<(Value a, Value b);  // unsigned on integers; false for NaN
Value operator>(Value a, Value b);
Value operator<=(Value a, Value b);
Value operator>=(Value a, Value b);
Value operator&(Value a, Value b);
Value operator|(Value a, Value b);
Value operator^(Value a, Value b);
Value operator~(Value a);
Value operator!(Value a);
Value operator<<(Value a, Value b);
Value operator>>(Value a, Value b);  // logical

inline Value Like(Value a, double x) { return a.code->Literal(a.reg, x); }
#define KEEL_SPIRV_WITH_NUMBER(op)                                        \
  inline Value operator op(Value a, double x) { return a op Like(a, x); } \
  inline Value operator op(double x, Value a) { return Like(a, x) op a; }
KEEL_SPIRV_WITH_NUMBER(+)
KEEL_SPIRV_WITH_NUMBER(-)
KEEL_SPIRV_WITH_NUMBER(*)
KEEL_SPIRV_WITH_NUMBER(/)
KEEL_SPIRV_WITH_NUMBER(%)
KEEL_SPIRV_WITH_NUMBER(==)
KEEL_SPIRV_WITH_NUMBER(!=)
KEEL_SPIRV_WITH_NUMBER(<)
KEEL_SPIRV_WITH_NUMBER(>)
KEEL_SPIRV_WITH_NUMBER(<=)
KEEL_SPIRV_WITH_NUMBER(>=)
KEEL_SPIRV_WITH_NUMBER(&)
KEEL_SPIRV_WITH_NUMBER(|)
KEEL_SPIRV_WITH_NUMBER(^)
KEEL_SPIRV_WITH_NUMBER(<<)
KEEL_SPIRV_WITH_NUMBER(>>)
#undef KEEL_SPIRV_WITH_NUMBER

Value Select(Value condition, Value a, Value b);
Value SignedLess(Value a, Value b);
Value ShiftArithmetic(Value a, Value b);
Value Bits(Value x);           // float to the integer register of its width
Value FromBits(Value bits);    // and back
Value Widen(Value u32);        // to u64, zero-extended
Value WidenSigned(Value u32);  // to u64, sign-extended
Value Narrow(Value u64);       // to u32, low bits
Value Abs(Value x);            // float
Value Floor(Value x);          // float
Value CopySign(Value magnitude, Value sign);
Value IsNan(Value x);  // by bits: a driver may assume that there is no NaN

// ---- definitions
namespace detail {

inline constexpr uint32_t kAligned = 2;

inline Value Arithmetic(Opcode on_float, Opcode on_integer, Value a, Value b) {
  const Value v = a.code->Binary(a.IsFloat() ? on_float : on_integer, a, b);
  if (a.IsFloat()) a.code->module.Decorate(v.id, {kNoContraction});
  return v;
}
inline Value Compare(Opcode on_float, Opcode on_integer, Value a, Value b) {
  return a.code->Binary(a.IsFloat() ? on_float : on_integer, Reg::kBool, a, b);
}
inline Value Logic(Opcode on_bool, Opcode on_integer, Value a, Value b) {
  return a.code->Binary(a.reg == Reg::kBool ? on_bool : on_integer, a, b);
}
inline Value Same(Opcode on_bool, Opcode on_float, Opcode on_integer, Value a, Value b) {
  return a.reg == Reg::kBool ? a.code->Binary(on_bool, a, b) : Compare(on_float, on_integer, a, b);
}

}  // namespace detail

inline Id Code::TypeOf(Reg reg) {
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

inline Value Code::Integer(Reg reg, uint64_t value) {
  const uint32_t low = static_cast<uint32_t>(value), high = static_cast<uint32_t>(value >> 32);
  return {this, module.Constant(TypeOf(reg), reg == Reg::kU64 ? Words{low, high} : Words{low}), reg};
}
inline Value Code::Literal(Reg reg, double value) {
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

inline Value Code::Unary(Opcode op, Reg result, Value a) {
  return {this, module.Emit(op, TypeOf(result), {a.id}), result};
}
inline Value Code::Binary(Opcode op, Reg result, Value a, Value b) {
  return {this, module.Emit(op, TypeOf(result), {a.id, b.id}), result};
}

// By way of a struct: GPU-assisted validation checks such accesses only.
inline Id Code::Pointer(Value address, Id type) {
  const Id block = module.Pointer(kPhysicalStorageBuffer, module.Block(type));
  const Id base = module.Emit(kConvertUToPtr, block, {address.id});
  return module.Emit(kAccessChain, module.Pointer(kPhysicalStorageBuffer, type), {base, module.U32(0)});
}
inline Value Code::Load(Value address, uint32_t bits, Reg reg) {
  const bool narrow = bits < 32;
  const Id type = narrow ? module.Unsigned(bits) : TypeOf(reg);
  const Id loaded = module.Emit(kLoad, type, {Pointer(address, type), detail::kAligned, bits / 8});
  return narrow ? Value{this, module.Emit(kUConvert, TypeOf(Reg::kU32), {loaded}), Reg::kU32}
                : Value{this, loaded, reg};
}
inline void Code::Store(Value address, uint32_t bits, Value value) {
  const bool narrow = bits < 32;
  const Id type = narrow ? module.Unsigned(bits) : TypeOf(value.reg);
  const Id stored = narrow ? module.Emit(kUConvert, type, {value.id}) : value.id;
  module.Do(kStore, {Pointer(address, type), stored, detail::kAligned, bits / 8});
}

inline void Code::If(Value condition, const std::function<void()>& then) {
  const Id inside = module.New(), after = module.New();
  module.Do(kSelectionMerge, {after, 0});
  module.Do(kBranchConditional, {condition.id, inside, after});
  module.Label(inside);
  then();
  module.Do(kBranch, {after});
  module.Label(after);
}

inline Code::State Code::While(const State& first, const std::function<Value(const State&)>& test,
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

inline Value operator+(Value a, Value b) { return detail::Arithmetic(kFAdd, kIAdd, a, b); }
inline Value operator-(Value a, Value b) { return detail::Arithmetic(kFSub, kISub, a, b); }
inline Value operator*(Value a, Value b) { return detail::Arithmetic(kFMul, kIMul, a, b); }
inline Value operator/(Value a, Value b) { return detail::Arithmetic(kFDiv, kUDiv, a, b); }
inline Value operator%(Value a, Value b) { return a.code->Binary(kUMod, a, b); }
inline Value operator-(Value a) { return a.code->Unary(a.IsFloat() ? kFNegate : kSNegate, a); }
inline Value operator==(Value a, Value b) { return detail::Same(kLogicalEqual, kFOrdEqual, kIEqual, a, b); }
inline Value operator!=(Value a, Value b) {
  return detail::Same(kLogicalNotEqual, kFUnordNotEqual, kINotEqual, a, b);
}
inline Value operator<(Value a, Value b) { return detail::Compare(kFOrdLessThan, kULessThan, a, b); }
inline Value operator>(Value a, Value b) { return detail::Compare(kFOrdGreaterThan, kUGreaterThan, a, b); }
inline Value operator<=(Value a, Value b) {
  return detail::Compare(kFOrdLessThanEqual, kULessThanEqual, a, b);
}
inline Value operator>=(Value a, Value b) {
  return detail::Compare(kFOrdGreaterThanEqual, kUGreaterThanEqual, a, b);
}
inline Value operator&(Value a, Value b) { return detail::Logic(kLogicalAnd, kBitwiseAnd, a, b); }
inline Value operator|(Value a, Value b) { return detail::Logic(kLogicalOr, kBitwiseOr, a, b); }
inline Value operator^(Value a, Value b) { return detail::Logic(kLogicalNotEqual, kBitwiseXor, a, b); }
inline Value operator~(Value a) { return a.code->Unary(kNot, a); }
inline Value operator!(Value a) { return a.code->Unary(kLogicalNot, a); }
inline Value operator<<(Value a, Value b) { return a.code->Binary(kShiftLeftLogical, a, b); }
inline Value operator>>(Value a, Value b) { return a.code->Binary(kShiftRightLogical, a, b); }

inline Value Select(Value c, Value a, Value b) {
  return {a.code, a.code->module.Emit(kSelect, a.code->TypeOf(a.reg), {c.id, a.id, b.id}), a.reg};
}
inline Value SignedLess(Value a, Value b) { return a.code->Binary(kSLessThan, Reg::kBool, a, b); }
inline Value ShiftArithmetic(Value a, Value b) { return a.code->Binary(kShiftRightArithmetic, a, b); }
inline Value Bits(Value x) { return x.code->Unary(kBitcast, x.IsWide() ? Reg::kU64 : Reg::kU32, x); }
inline Value FromBits(Value x) { return x.code->Unary(kBitcast, x.IsWide() ? Reg::kF64 : Reg::kF32, x); }
inline Value Widen(Value x) { return x.code->Unary(kUConvert, Reg::kU64, x); }
inline Value WidenSigned(Value x) { return x.code->Unary(kSConvert, Reg::kU64, x); }
inline Value Narrow(Value x) { return x.code->Unary(kUConvert, Reg::kU32, x); }
// lavapipe takes the FAbs of a square root for the root, which may be -0.
inline Value Abs(Value x) {
  const Value bits = Bits(x);
  const uint64_t all = bits.IsWide() ? ~uint64_t{0} : ~uint32_t{0};
  return FromBits(bits & bits.code->Integer(bits.reg, all >> 1));
}
inline Value Floor(Value x) { return x.code->Ext(kFloor, x); }
// A newer lavapipe merges (m & ~mask) | (s & mask) wrongly on processors with AVX-512 (Mesa 26.2.6).
inline Value CopySign(Value magnitude, Value sign) {
  const Value s = Bits(sign), m = Abs(magnitude);
  const Value most = s.code->Integer(s.reg, (s.IsWide() ? ~uint64_t{0} : ~uint32_t{0}) >> 1);
  return Select(s > most, -m, m);
}
inline Value IsNan(Value x) {
  const Value b = Bits(x);
  const bool wide = b.IsWide();
  const Value magnitude = b & b.code->Integer(b.reg, wide ? ~uint64_t{0} >> 1 : 0x7fffffff);
  return magnitude > b.code->Integer(b.reg, wide ? uint64_t{0x7ff} << 52 : 0x7f800000);
}

}  // namespace keel::spirv
#endif
