// scalar_ops.h: the scalar ops of the catalogue for code generators: one row for each elementwise op, with
// its expression in C (CUDA C++ too) and GLSL, its SPIR-V instruction, its dtypes, and whether it may fail.
//
// Expressions contain $0, $1, $2 for the operands, which must be parenthesised or names. An expression named
// keel_OP(...) is a function that the generator has to define, because neither language has it with Keel's
// semantics (integers wrap, division truncates and may fail, NaN wins in maximum). A row whose SPIR-V columns
// are 0 needs an expansion there, too. f16 and bf16 compute in f32 and round after each op.
#ifndef KEEL_PLUGIN_SCALAR_OPS_H
#define KEEL_PLUGIN_SCALAR_OPS_H
#include <keel/keel_base.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace keel::plugin {

enum class OpClass : uint8_t { kArithmetic, kCompare, kLogic, kBits, kRound, kMath, kTest, kSelect, kCast };

// Sets of dtypes, as the catalogue's "type" clause names them.
enum Dtypes : uint8_t {
  kNone = 0,
  kFloats = 1,    // "float"
  kSigned = 2,    // "int"
  kUnsigned = 4,  // "uint"
  kBools = 8,
  kInts = kSigned | kUnsigned,
  kNum = kFloats | kInts,
  kAny = kNum | kBools
};

struct SpirvOp {
  uint16_t on_float, on_signed, on_unsigned, on_bool;  // opcodes; 0: none, see `extended`
  uint16_t extended;                                   // instruction of GLSL.std.450, on floats
};

struct ScalarOp {
  const char* name;
  uint8_t arity;
  OpClass op_class;
  uint8_t dtypes;         // of the first operand (select: the second)
  uint8_t may_fail;       // dtypes for which an element may fail
  const char* c_float;    // "": not for floats
  const char* c_integer;  // also on bools
  const char* glsl;
  SpirvOp spirv;
};

#define KEEL_SAME(text) text, text, text
// clang-format off: a row each
inline constexpr ScalarOp kScalarOps[] = {
    {"add",
     2,
     OpClass::kArithmetic,
     kNum,
     0,
     "$0 + $1",
     "keel_add($0, $1)",
     "$0 + $1",
     {129, 128, 128, 0, 0}},
    {"sub",
     2,
     OpClass::kArithmetic,
     kNum,
     0,
     "$0 - $1",
     "keel_sub($0, $1)",
     "$0 - $1",
     {131, 130, 130, 0, 0}},
    {"mul",
     2,
     OpClass::kArithmetic,
     kNum,
     0,
     "$0 * $1",
     "keel_mul($0, $1)",
     "$0 * $1",
     {133, 132, 132, 0, 0}},
    {"div",
     2,
     OpClass::kArithmetic,
     kNum,
     kInts,
     "$0 / $1",
     "keel_div($0, $1)",
     "keel_div($0, $1)",
     {136, 0, 0, 0, 0}},
    {"mod", 2, OpClass::kArithmetic, kNum, kInts, KEEL_SAME("keel_mod($0, $1)"), {}},
    {"rem", 2, OpClass::kArithmetic, kNum, kInts, "fmod($0, $1)", "keel_rem($0, $1)", "keel_rem($0, $1)", {}},
    {"pow", 2, OpClass::kMath, kNum, kSigned, "pow($0, $1)", "keel_pow($0, $1)", "keel_pow($0, $1)", {}},
    {"maximum",
     2,
     OpClass::kArithmetic,
     kNum,
     0,
     "keel_maximum($0, $1)",
     "$0 < $1 ? $1 : $0",
     "keel_maximum($0, $1)",
     {}},
    {"minimum",
     2,
     OpClass::kArithmetic,
     kNum,
     0,
     "keel_minimum($0, $1)",
     "$1 < $0 ? $1 : $0",
     "keel_minimum($0, $1)",
     {}},
    {"equal", 2, OpClass::kCompare, kAny, 0, KEEL_SAME("$0 == $1"), {180, 170, 170, 164, 0}},
    {"not_equal", 2, OpClass::kCompare, kAny, 0, KEEL_SAME("$0 != $1"), {183, 171, 171, 165, 0}},
    {"less", 2, OpClass::kCompare, kNum, 0, KEEL_SAME("$0 < $1"), {184, 177, 176, 0, 0}},
    {"less_equal", 2, OpClass::kCompare, kNum, 0, KEEL_SAME("$0 <= $1"), {188, 179, 178, 0, 0}},
    {"greater", 2, OpClass::kCompare, kNum, 0, KEEL_SAME("$0 > $1"), {186, 173, 172, 0, 0}},
    {"greater_equal", 2, OpClass::kCompare, kNum, 0, KEEL_SAME("$0 >= $1"), {190, 175, 174, 0, 0}},
    {"logical_and", 2, OpClass::kLogic, kBools, 0, "", "$0 && $1", "$0 && $1", {0, 0, 0, 167, 0}},
    {"logical_or", 2, OpClass::kLogic, kBools, 0, "", "$0 || $1", "$0 || $1", {0, 0, 0, 166, 0}},
    {"logical_xor", 2, OpClass::kLogic, kBools, 0, "", "$0 != $1", "$0 != $1", {0, 0, 0, 165, 0}},
    {"logical_not", 1, OpClass::kLogic, kBools, 0, "", "!$0", "!$0", {0, 0, 0, 168, 0}},
    {"bit_and", 2, OpClass::kBits, kInts, 0, "", "$0 & $1", "$0 & $1", {0, 199, 199, 0, 0}},
    {"bit_or", 2, OpClass::kBits, kInts, 0, "", "$0 | $1", "$0 | $1", {0, 197, 197, 0, 0}},
    {"bit_xor", 2, OpClass::kBits, kInts, 0, "", "$0 ^ $1", "$0 ^ $1", {0, 198, 198, 0, 0}},
    {"bit_not", 1, OpClass::kBits, kInts, 0, "", "~$0", "~$0", {0, 200, 200, 0, 0}},
    {"shift_left",
     2,
     OpClass::kBits,
     kUnsigned,
     0,
     "",
     "keel_shift_left($0, $1)",
     "keel_shift_left($0, $1)",
     {}},
    {"shift_right",
     2,
     OpClass::kBits,
     kUnsigned,
     0,
     "",
     "keel_shift_right($0, $1)",
     "keel_shift_right($0, $1)",
     {}},
    {"neg", 1, OpClass::kArithmetic, kNum, 0, "-$0", "keel_neg($0)", "-$0", {127, 126, 126, 0, 0}},
    {"abs", 1, OpClass::kArithmetic, kNum, 0, "fabs($0)", "keel_abs($0)", "abs($0)", {0, 0, 0, 0, 4}},
    {"sign",
     1,
     OpClass::kArithmetic,
     kNum,
     0,
     "$0 > 0 ? 1 : $0 < 0 ? -1 : $0",
     "($0 > 0) - ($0 < 0)",
     "keel_sign($0)",
     {}},
    {"sqrt", 1, OpClass::kMath, kFloats, 0, "sqrt($0)", "", "sqrt($0)", {0, 0, 0, 0, 31}},
    {"rsqrt", 1, OpClass::kMath, kFloats, 0, "1 / sqrt($0)", "", "1 / sqrt($0)", {}},
    {"reciprocal", 1, OpClass::kMath, kFloats, 0, "1 / $0", "", "1 / $0", {}},
    {"exp", 1, OpClass::kMath, kFloats, 0, "exp($0)", "", "keel_exp($0)", {}},
    {"log", 1, OpClass::kMath, kFloats, 0, "log($0)", "", "keel_log($0)", {}},
    {"log1p", 1, OpClass::kMath, kFloats, 0, "log1p($0)", "", "keel_log1p($0)", {}},
    {"sin", 1, OpClass::kMath, kFloats, 0, "sin($0)", "", "keel_sin($0)", {}},
    {"cos", 1, OpClass::kMath, kFloats, 0, "cos($0)", "", "keel_cos($0)", {}},
    {"tanh", 1, OpClass::kMath, kFloats, 0, "tanh($0)", "", "keel_tanh($0)", {}},
    {"erf", 1, OpClass::kMath, kFloats, 0, "erf($0)", "", "keel_erf($0)", {}},
    {"floor", 1, OpClass::kRound, kFloats, 0, "floor($0)", "", "floor($0)", {0, 0, 0, 0, 8}},
    {"ceil", 1, OpClass::kRound, kFloats, 0, "ceil($0)", "", "ceil($0)", {0, 0, 0, 0, 9}},
    {"round", 1, OpClass::kRound, kFloats, 0, "rint($0)", "", "roundEven($0)", {0, 0, 0, 0, 2}},
    {"relu",
     1,
     OpClass::kArithmetic,
     kFloats | kSigned,
     0,
     "$0 <= 0 ? 0 : $0",
     "$0 < 0 ? 0 : $0",
     "keel_relu($0)",
     {}},
    {"is_nan", 1, OpClass::kTest, kFloats, 0, "isnan($0)", "", "keel_is_nan($0)", {}},
    {"is_inf", 1, OpClass::kTest, kFloats, 0, "isinf($0)", "", "keel_is_inf($0)", {}},
    {"is_finite", 1, OpClass::kTest, kFloats, 0, "isfinite($0)", "", "keel_is_finite($0)", {}},
    {"select", 3, OpClass::kSelect, kAny, 0, KEEL_SAME("$0 ? $1 : $2"), {169, 169, 169, 169, 0}},
    {"cast", 1, OpClass::kCast, kAny, 0, KEEL_SAME("keel_cast($0)"), {}},
};
// clang-format on
#undef KEEL_SAME

// nullptr: no elementwise primitive of that name.
inline const ScalarOp* find_scalar_op(std::string_view name) {
  for (const ScalarOp& op : kScalarOps)
    if (name == op.name) return &op;
  return nullptr;
}

// The set that contains a dtype; kNone: a storage dtype, or none of Keel.
inline Dtypes dtypes_of(keel_dt dt) {
  const uint32_t code = dt & 255;
  if ((dt >> 8 & 255) < 8) return kNone;
  if (code == 0) return kSigned;
  if (code == 1) return kUnsigned;
  if (code == 2 || code == 4) return kFloats;
  return code == 6 ? kBools : kNone;
}

// The text with its operands in place of $0, $1 and $2.
inline std::string substitute(std::string_view text, const std::string* operands) {
  std::string out;
  for (size_t i = 0; i < text.size(); i++) {
    const bool operand = text[i] == '$' && i + 1 < text.size();
    if (operand)
      out += operands[text[++i] - '0'];
    else
      out += text[i];
  }
  return out;
}

}  // namespace keel::plugin
#endif
