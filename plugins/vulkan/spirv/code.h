// code.h: arithmetic on values, written as C++ expressions that append instructions to a module.
//
// A Value is a register: bool, u32, u64, f32 or f64. Integers of 32 bits and fewer are u32 registers: signed
// ones sign-extended, unsigned ones zero-extended. f16 and bf16 are f32 registers that hold such a value.
// Operators follow the register: + on floats is OpFAdd, never contracted to a fused multiply-add. Integer
// comparisons, shifts and division have no signed form here; see Less and `dtypes.h`.
#pragma once

#include <functional>

#include "sdk/plugin/spirv.h"

namespace keel_spirv {

using namespace keel::spirv;

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

}  // namespace keel_spirv
