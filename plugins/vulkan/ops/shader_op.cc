// shader_op.cc: see shader_op.h.
#include "shader_op.h"

namespace vulkan {
namespace {

// By dtype: the kind of modules in CMakeLists.txt, the STORAGE of elements.glsl, and what from_bits reads.
struct Kind {
  keel_dt dtype;
  const char* name;
  uint32_t storage;
};
constexpr Kind kKinds[] = {{KEEL_BOOL, "u8", 2}, {KEEL_I8, "i8", 0},    {KEEL_I16, "i8", 1},
                           {KEEL_I32, "i32", 0}, {KEEL_I64, "i64", 0},  {KEEL_U8, "u8", 0},
                           {KEEL_U16, "u8", 1},  {KEEL_U32, "u32", 0},  {KEEL_U64, "u64", 0},
                           {KEEL_F16, "f16", 0}, {KEEL_BF16, "f16", 1}, {KEEL_F32, "f32", 0},
                           {KEEL_F64, "f64", 0}};

const Kind* KindOf(const keel_tensor& t) {
  for (const Kind& each : kKinds)
    if (each.dtype == keel_dt_of(&t)) return &each;
  return nullptr;
}

int32_t Match(keel_dev d, const keel_host* host, const keel_node* of,
              const char* (*lack)(const Optional&, const keel_tensor&)) {
  Node node(host, of);
  return keel::plugin::takes_all(node, [&](const keel_tensor& t) { return lack(d->has, t); });
}

}  // namespace

VkPipeline Op::Make(const std::string& module, const Constants& constants, uint32_t subgroup) {
  Code code = Shader(module);
  code.subgroup = subgroup;
  if (!code.words) Fail(KEEL_INTERNAL, "vulkan has no shader " + module);
  VkPipeline made = nullptr;
  if (!rc) rc = device->Pipeline(code, constants, &made);
  return made;
}

VkPipeline Op::Numbers(const char* shader, const keel_tensor& t, const Constants& constants) {
  const Kind* kind = KindOf(t);
  if (!kind) return Fail(KEEL_UNIMPLEMENTED, "vulkan: not one of Keel's dtypes"), nullptr;
  Constants all = {n_in + n_out, kind->storage};
  all.insert(all.end(), constants.begin(), constants.end());
  std::string module = std::string(shader) + "_" + kind->name;
  // Sums and products wrap: the module for unsigned integers serves both.
  if (!Shader(module).words && kind->name[0] == 'i') module[module.rfind('_') + 1] = 'u';
  return Make(module, all);
}

VkPipeline Op::Cooperative(const char* shader, const Constants& constants) {
  const Matrices& m = device->has.matrices;
  Constants all = {n_in + n_out, 0, 4 * m.subgroup, m.rows | m.columns << 8 | m.inner << 16};
  all.insert(all.end(), constants.begin(), constants.end());
  return Make(std::string(shader) + "_cooperative", all, m.subgroup);
}

VkPipeline Op::Movement(const char* shader, const keel_tensor& t, const Constants& constants) {
  Constants all = {n_in + n_out};
  all.insert(all.end(), constants.begin(), constants.end());
  return Make(std::string(shader) + "_b" + std::to_string(t.dtype.bits), all);
}

const char* LackOfWidth(const Optional& has, const keel_tensor& t) {
  if (t.dtype.bits < 8) return "its shaders do not move elements of less than a byte";
  return Lack(has, false, t.dtype.bits == 8, t.dtype.bits == 16);
}
const char* LackOfNumbers(const Optional& has, const keel_tensor& t) {
  if (!KindOf(t)) return "not one of Keel's dtypes";
  if (IsFloat(t)) return Lack(has, t.dtype.bits == 64, false, t.dtype.bits == 16);
  const bool narrow = t.dtype.bits < 32;
  return Lack(has, false, narrow, narrow);  // one module for both
}
int32_t MatchNumbers(keel_dev d, const keel_host* host, const keel_node* node) {
  return Match(d, host, node, LackOfNumbers);
}
int32_t MatchWidths(keel_dev d, const keel_host* host, const keel_node* node) {
  return Match(d, host, node, LackOfWidth);
}

}  // namespace vulkan
