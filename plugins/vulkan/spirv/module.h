// module.h: the words of one SPIR-V module for Vulkan 1.3 (SPIR-V 1.5, physical storage buffer addresses).
// Types and constants are deduplicated, capabilities follow from the types; instructions go to the only
// function. code.h adds arithmetic on values.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace keel_spirv {

using Id = uint32_t;
using Words = std::vector<uint32_t>;

// Opcodes by the numbers of the SPIR-V specification, as far as the emitter uses them.
enum Opcode : uint16_t {
  kExtInstImport = 11,
  kExtInst = 12,
  kMemoryModel = 14,
  kEntryPoint = 15,
  kExecutionMode = 16,
  kCapability = 17,
  kTypeVoid = 19,
  kTypeBool = 20,
  kTypeInt = 21,
  kTypeFloat = 22,
  kTypeVector = 23,
  kTypeArray = 28,
  kTypeStruct = 30,
  kTypePointer = 32,
  kTypeFunction = 33,
  kConstantTrue = 41,
  kConstantFalse = 42,
  kConstant = 43,
  kFunction = 54,
  kFunctionEnd = 56,
  kVariable = 59,
  kLoad = 61,
  kStore = 62,
  kAccessChain = 65,
  kDecorate = 71,
  kMemberDecorate = 72,
  kCompositeExtract = 81,
  kConvertFToU = 109,
  kConvertFToS = 110,
  kConvertSToF = 111,
  kConvertUToF = 112,
  kUConvert = 113,
  kSConvert = 114,
  kFConvert = 115,
  kConvertUToPtr = 120,
  kBitcast = 124,
  kSNegate = 126,
  kFNegate = 127,
  kIAdd = 128,
  kFAdd = 129,
  kISub = 130,
  kFSub = 131,
  kIMul = 132,
  kFMul = 133,
  kUDiv = 134,
  kFDiv = 136,
  kUMod = 137,
  kLogicalEqual = 164,
  kLogicalNotEqual = 165,
  kLogicalOr = 166,
  kLogicalAnd = 167,
  kLogicalNot = 168,
  kSelect = 169,
  kIEqual = 170,
  kINotEqual = 171,
  kUGreaterThan = 172,
  kSGreaterThan = 173,
  kUGreaterThanEqual = 174,
  kSGreaterThanEqual = 175,
  kULessThan = 176,
  kSLessThan = 177,
  kULessThanEqual = 178,
  kSLessThanEqual = 179,
  kFOrdEqual = 180,
  kFUnordNotEqual = 183,
  kFOrdLessThan = 184,
  kFOrdGreaterThan = 186,
  kFOrdLessThanEqual = 188,
  kFOrdGreaterThanEqual = 190,
  kShiftRightLogical = 194,
  kShiftRightArithmetic = 195,
  kShiftLeftLogical = 196,
  kBitwiseOr = 197,
  kBitwiseXor = 198,
  kBitwiseAnd = 199,
  kNot = 200,
  kBitFieldSExtract = 202,
  kAtomicCompareExchange = 230,
  kPhi = 245,
  kLoopMerge = 246,
  kSelectionMerge = 247,
  kLabel = 248,
  kBranch = 249,
  kBranchConditional = 250,
  kReturn = 253
};
constexpr uint32_t kNoContraction = 42;  // a decoration
// Instructions of the extended set GLSL.std.450.
enum Extended : uint32_t { kRoundEven = 2, kTrunc = 3, kFloor = 8, kCeil = 9, kSqrt = 31 };
enum StorageClass : uint32_t { kInput = 1, kPushConstant = 9, kPhysicalStorageBuffer = 5349 };
enum Capability : uint32_t {
  kShader = 1,
  kFloat64 = 10,
  kInt64 = 11,
  kStorageBuffer16 = 4433,
  kStorageBuffer8 = 4448,
  kPhysicalAddresses = 5347
};

class Module {
 public:
  Module();

  // ---- declarations: equal ones have one id
  Id Void() { return Declare(kTypeVoid, {}, false); }
  Id Bool() { return Declare(kTypeBool, {}, false); }
  Id Unsigned(uint32_t bits);
  Id Float(uint32_t bits);
  Id Vector(Id type, uint32_t n) { return Declare(kTypeVector, {type, n}, false); }
  Id Pointer(StorageClass where, Id type) { return Declare(kTypePointer, {where, type}, false); }
  Id Constant(Id type, const Words& value) { return Declare(kConstant, value, true, type); }
  Id BoolConstant(bool value) { return Declare(value ? kConstantTrue : kConstantFalse, {}, true, Bool()); }
  Id U32(uint32_t value) { return Constant(Unsigned(32), {value}); }

  // A struct of one array of n u64, in push constants.
  Id PushWords(uint32_t n);
  // A struct of one member, in a buffer.
  Id Block(Id type);
  Id BuiltIn(uint32_t number, Id type);  // an input variable

  // ---- instructions of the function
  Id New() { return next_++; }
  Id Emit(Opcode op, Id type, std::initializer_list<uint32_t> operands);
  void Do(Opcode op, std::initializer_list<uint32_t> operands);
  Id Ext(Extended number, Id type, Id operand) { return Emit(kExtInst, type, {extended_, number, operand}); }
  void Decorate(Id id, std::initializer_list<uint32_t> words);
  void Label(Id id) {
    Do(kLabel, {id});
    block_ = id;
  }
  Id Block() const { return block_; }  // label of the block under construction
  // A phi whose second (value, block) pair is set by SetPhi.
  Id Phi(Id type, Id value, Id block, size_t* at);
  void SetPhi(size_t at, Id value, Id block) { code_[at] = value, code_[at + 1] = block; }

  bool Uses(Capability c) const { return capabilities_.count(c) != 0; }
  // The complete module: an entry point `main` with groups of this size.
  Words Finish(uint32_t group_size);

 private:
  Id Declare(Opcode op, const Words& operands, bool typed, Id type = 0);
  static void Append(Words* to, Opcode op, const Words& operands);

  std::map<Id, Id> blocks_;
  Id next_ = 1;
  Id extended_, main_, block_ = 0;
  std::map<Words, Id> known_;
  std::set<uint32_t> capabilities_ = {kShader, kInt64, kPhysicalAddresses};
  std::vector<Id> variables_;
  Words decorations_, declarations_, code_;
};

}  // namespace keel_spirv
