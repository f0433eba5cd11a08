// module.cc: see module.h.
#include "module.h"

namespace keel_spirv {
namespace {

constexpr uint32_t kDecorationBlock = 2, kDecorationArrayStride = 6, kDecorationBuiltIn = 11,
                   kDecorationOffset = 35;

// A literal string: bytes, a zero, padding to whole words.
void AppendText(Words* to, const char* text) {
  uint32_t word = 0, n = 0;
  for (bool more = true; more; text++) {
    more = *text != 0;
    word |= static_cast<uint32_t>(static_cast<unsigned char>(*text)) << 8 * n++;
    if (n == 4) to->push_back(word), word = n = 0;
  }
  if (n != 0) to->push_back(word);
}

}  // namespace

Module::Module() : extended_(New()), main_(New()) {}

void Module::Append(Words* to, Opcode op, const Words& operands) {
  to->push_back(static_cast<uint32_t>(operands.size() + 1) << 16 | op);
  to->insert(to->end(), operands.begin(), operands.end());
}

Id Module::Declare(Opcode op, const Words& operands, bool typed, Id type) {
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

Id Module::Unsigned(uint32_t bits) {
  if (bits == 8) capabilities_.insert(kStorageBuffer8);
  if (bits == 16) capabilities_.insert(kStorageBuffer16);
  return Declare(kTypeInt, {bits, 0}, false);
}
Id Module::Float(uint32_t bits) {
  if (bits == 64) capabilities_.insert(kFloat64);
  return Declare(kTypeFloat, {bits}, false);
}

Id Module::PushWords(uint32_t n) {
  const Id array = Declare(kTypeArray, {Unsigned(64), U32(n)}, false);
  const Id block = Declare(kTypeStruct, {array}, false);
  Decorate(array, {kDecorationArrayStride, 8});
  Decorate(block, {kDecorationBlock});
  Append(&decorations_, kMemberDecorate, {block, 0, kDecorationOffset, 0});
  const Id pointer = Pointer(kPushConstant, block);
  variables_.push_back(Declare(kVariable, {kPushConstant}, true, pointer));
  return variables_.back();
}
Id Module::Block(Id type) {
  const auto [it, fresh] = blocks_.try_emplace(type, 0);
  if (!fresh) return it->second;
  it->second = Declare(kTypeStruct, {type}, false);
  Decorate(it->second, {kDecorationBlock});
  Append(&decorations_, kMemberDecorate, {it->second, 0, kDecorationOffset, 0});
  return it->second;
}
Id Module::BuiltIn(uint32_t number, Id type) {
  const Id pointer = Pointer(kInput, type), variable = New();
  Append(&declarations_, kVariable, {pointer, variable, kInput});
  Decorate(variable, {kDecorationBuiltIn, number});
  variables_.push_back(variable);
  return variable;
}

Id Module::Emit(Opcode op, Id type, std::initializer_list<uint32_t> operands) {
  Words words = {type, New()};
  words.insert(words.end(), operands);
  Append(&code_, op, words);
  return words[1];
}
void Module::Do(Opcode op, std::initializer_list<uint32_t> operands) { Append(&code_, op, operands); }
void Module::Decorate(Id id, std::initializer_list<uint32_t> words) {
  Words all = {id};
  all.insert(all.end(), words);
  Append(&decorations_, kDecorate, all);
}
Id Module::Phi(Id type, Id value, Id block, size_t* at) {
  const Id id = Emit(kPhi, type, {value, block, 0, 0});
  *at = code_.size() - 2;
  return id;
}

Words Module::Finish(uint32_t group_size) {
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

}  // namespace keel_spirv
