// spirv.h: writes SPIR-V: the words of one module of a compute shader for Vulkan 1.3 (SPIR-V 1.5, physical
// storage buffer addresses). Types and constants are deduplicated, capabilities follow from the types;
// instructions go to the only function. A Module belongs to one thread.
#ifndef KEEL_SDK_PLUGIN_SPIRV_H
#define KEEL_SDK_PLUGIN_SPIRV_H

#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace keel::spirv {

using Id = uint32_t;
using Words = std::vector<uint32_t>;

// Opcodes by the numbers of the SPIR-V specification, as far as elementwise bodies need them.
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
// Execution modes for floats of one width. Each needs the capability of its name, whose number is greater
// by 5.
enum Mode : uint32_t { kDenormPreserve = 4459, kSignedZeroInfNanPreserve = 4461, kRoundingModeRte = 4462 };
struct FloatMode {
  Mode mode;
  uint32_t width;  // bits
};

// An instruction without a result, or with its type and id as the first operands.
inline void Append(Words* to, Opcode op, const Words& operands) {
  to->push_back(static_cast<uint32_t>(operands.size() + 1) << 16 | op);
  to->insert(to->end(), operands.begin(), operands.end());
}

// A module of SPIR-V 1.4 or newer, with these modes for its only entry point. count: words.
inline Words WithFloatModes(const uint32_t* words, size_t count, const std::vector<FloatMode>& modes) {
  constexpr size_t kHeader = 5;
  Words out(words, words + kHeader);
  for (const FloatMode& each : modes) Append(&out, kCapability, {each.mode + 5U});
  for (size_t at = kHeader, length; at < count; at += length) {
    length = words[at] >> 16;
    out.insert(out.end(), words + at, words + at + length);
    if ((words[at] & 0xFFFF) == kEntryPoint)  // its second operand is the function
      for (const FloatMode& each : modes)
        Append(&out, kExecutionMode, {words[at + 2], each.mode, each.width});
  }
  return out;
}

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

  std::map<Id, Id> blocks_;
  Id next_ = 1;
  Id extended_, main_, block_ = 0;
  std::map<Words, Id> known_;
  std::set<uint32_t> capabilities_ = {kShader, kInt64, kPhysicalAddresses};
  std::vector<Id> variables_;
  Words decorations_, declarations_, code_;
};

inline constexpr uint32_t kDecorationBlock = 2, kDecorationArrayStride = 6, kDecorationBuiltIn = 11,
                          kDecorationOffset = 35;

// A literal string: bytes, a zero, padding to whole words.
inline void AppendText(Words* to, const char* text) {
  uint32_t word = 0, n = 0;
  for (bool more = true; more; text++) {
    more = *text != 0;
    word |= static_cast<uint32_t>(static_cast<unsigned char>(*text)) << 8 * n++;
    if (n == 4) to->push_back(word), word = n = 0;
  }
  if (n != 0) to->push_back(word);
}

inline Module::Module() : extended_(New()), main_(New()) {}

inline Id Module::Declare(Opcode op, const Words& operands, bool typed, Id type) {
  Words key = {op, type};
  key.insert(key.end(), operands.begin(), operands.end());
  const auto [it, fresh] = known_.try_emplace(key, next_);
  if (!fresh) return it->second;
  Words words;
  if (typed) words.push_back(type);
  words.push_back(New());
  words.insert(words.end(), operands.begin(), operands.end());
  Append(&declarations_, op, words);
  return it->second;
}

inline Id Module::Unsigned(uint32_t bits) {
  if (bits == 8) capabilities_.insert(kStorageBuffer8);
  if (bits == 16) capabilities_.insert(kStorageBuffer16);
  return Declare(kTypeInt, {bits, 0}, false);
}
inline Id Module::Float(uint32_t bits) {
  if (bits == 64) capabilities_.insert(kFloat64);
  return Declare(kTypeFloat, {bits}, false);
}

inline Id Module::PushWords(uint32_t n) {
  const Id array = Declare(kTypeArray, {Unsigned(64), U32(n)}, false);
  const Id block = Declare(kTypeStruct, {array}, false);
  Decorate(array, {kDecorationArrayStride, 8});
  Decorate(block, {kDecorationBlock});
  Append(&decorations_, kMemberDecorate, {block, 0, kDecorationOffset, 0});
  const Id pointer = Pointer(kPushConstant, block);
  variables_.push_back(Declare(kVariable, {kPushConstant}, true, pointer));
  return variables_.back();
}
inline Id Module::Block(Id type) {
  const auto [it, fresh] = blocks_.try_emplace(type, 0);
  if (!fresh) return it->second;
  it->second = Declare(kTypeStruct, {type}, false);
  Decorate(it->second, {kDecorationBlock});
  Append(&decorations_, kMemberDecorate, {it->second, 0, kDecorationOffset, 0});
  return it->second;
}
inline Id Module::BuiltIn(uint32_t number, Id type) {
  const Id pointer = Pointer(kInput, type), variable = New();
  Append(&declarations_, kVariable, {pointer, variable, kInput});
  Decorate(variable, {kDecorationBuiltIn, number});
  variables_.push_back(variable);
  return variable;
}

inline Id Module::Emit(Opcode op, Id type, std::initializer_list<uint32_t> operands) {
  Words words = {type, New()};
  words.insert(words.end(), operands);
  Append(&code_, op, words);
  return words[1];
}
inline void Module::Do(Opcode op, std::initializer_list<uint32_t> operands) { Append(&code_, op, operands); }
inline void Module::Decorate(Id id, std::initializer_list<uint32_t> words) {
  Words all = {id};
  all.insert(all.end(), words);
  Append(&decorations_, kDecorate, all);
}
inline Id Module::Phi(Id type, Id value, Id block, size_t* at) {
  const Id id = Emit(kPhi, type, {value, block, 0, 0});
  *at = code_.size() - 2;
  return id;
}

inline Words Module::Finish(uint32_t group_size) {
  const Id nothing = Void(), signature = Declare(kTypeFunction, {nothing}, false);
  Words out = {0x07230203, 0x00010500, 0, 0, 0};  // magic, version 1.5, generator, bound, schema
  for (uint32_t c : capabilities_) Append(&out, kCapability, {c});
  Words import = {extended_};
  AppendText(&import, "GLSL.std.450");
  Append(&out, kExtInstImport, import);
  Append(&out, kMemoryModel, {5348, 1});  // PhysicalStorageBuffer64, GLSL450
  Words entry = {5, main_};               // GLCompute
  AppendText(&entry, "main");
  entry.insert(entry.end(), variables_.begin(), variables_.end());
  Append(&out, kEntryPoint, entry);
  Append(&out, kExecutionMode, {main_, 17, group_size, 1, 1});  // LocalSize
  out.insert(out.end(), decorations_.begin(), decorations_.end());
  out.insert(out.end(), declarations_.begin(), declarations_.end());
  Append(&out, kFunction, {nothing, main_, 0, signature});
  out.insert(out.end(), code_.begin(), code_.end());
  Append(&out, kFunctionEnd, {});
  out[3] = next_;
  return out;
}

}  // namespace keel::spirv
#endif
