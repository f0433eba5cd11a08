// cases.cc: see cases.h.
#include "cases.h"

#include "plugins/vulkan/spirv/kernel.h"

namespace vulkan_test {
namespace {

using keel::plugin::dtypes_of;
using keel::plugin::OpClass;
using keel::plugin::ScalarOp;

constexpr keel_dt kAll[] = {KEEL_BOOL, KEEL_I8,  KEEL_I16, KEEL_I32,  KEEL_I64, KEEL_U8, KEEL_U16,
                            KEEL_U32,  KEEL_U64, KEEL_F16, KEEL_BF16, KEEL_F32, KEEL_F64};

bool GivesBool(OpClass c) { return c == OpClass::kCompare || c == OpClass::kLogic || c == OpClass::kTest; }

keel_node NodeOf(const ScalarOp& op, keel_dt in, keel_dt out, const Dims& dims) {
  std::vector<BareTensor> operands(op.arity, {in, dims});
  if (op.op_class == OpClass::kSelect) operands[0].dtype = KEEL_BOOL;
  bare::NodeBuilder n(op.name, operands, {{out, dims}});
  if (op.op_class == OpClass::kCast) n.Dtype("to", out);
  return n.node;
}

void AddOwn(const Dims& dims, std::vector<keel_node>* all) {
  for (keel_dt dt : kAll) {
    const bool number = dtypes_of(dt) != keel::plugin::kBools;
    const BareTensor x = {dt, dims}, one = {dt, {}};
    if (number) all->push_back(bare::NodeBuilder("square", {x}, {x}).node);
    if (number) all->push_back(bare::NodeBuilder("clamp", {x, one, one}, {x}).node);
    if (!bare::IsFloat(dt)) continue;
    for (const char* op : {"sigmoid", "silu", "softplus"})
      all->push_back(bare::NodeBuilder(op, {x}, {x}).node);
    for (bool tanh : {false, true})
      all->push_back(bare::NodeBuilder("gelu", {x}, {x}).Flag("tanh", tanh).node);
    all->push_back(bare::NodeBuilder("leaky_relu", {x}, {x}).Real("alpha", 0.01).node);
  }
}

std::string Text(keel_dt dt) {
  return (dt == KEEL_BOOL   ? "bool"
          : dt == KEEL_BF16 ? "bf16"
                            : "iuf"[dt & 3] + std::to_string(dt >> 8 & 255));
}

constexpr uint64_t kSpecialInts[] = {0,
                                     1,
                                     2,
                                     3,
                                     7,
                                     8,
                                     15,
                                     31,
                                     63,
                                     64,
                                     100,
                                     0x55555555,
                                     0xfedcba9876543210,
                                     0x7f,
                                     0x80,
                                     0xff,
                                     0x7fff,
                                     0x8000,
                                     0x7fffffff,
                                     0x80000000,
                                     0x80000001,
                                     0x67400015,
                                     0x6740000000000015,
                                     0x100000000,
                                     uint64_t{1} << 53 | 1,
                                     (uint64_t{1} << 63) - 1,
                                     uint64_t{1} << 63,
                                     (uint64_t{1} << 63) + 1,
                                     uint64_t{0} - 2,
                                     uint64_t{0} - 3,
                                     uint64_t{0} - 7,
                                     uint64_t{0} - 1};
constexpr double kSpecialFloats[] = {
    0,      0.25,   0.5,     1,     1.5,   2,      2.5,     3,        7,          10,        88.7,
    89,     103.9,  104,     709.7, 745,   0.1,    1e-3,    1e-8,     0.99999994, 1.0000001, 127.5,
    255,    256,    32767.5, 65504, 65519, 65520,  1e6,     1e9,      2147483647, 0x1p31,    0x1p32,
    0x1p53, 0x1p63, 0x1p64,  1e15,  1e22,  3.4e38, 1.7e308, INFINITY, NAN};

uint64_t BitsOf(keel_dt dt, double x) {
  const float f = static_cast<float>(x);
  if (dt == KEEL_F64) return std::bit_cast<uint64_t>(x);
  if (dt == KEEL_F32) return std::bit_cast<uint32_t>(f);
  if (dt == KEEL_BF16) return std::bit_cast<uint32_t>(f) >> 16;
  const _Float16 h = static_cast<_Float16>(f);
  return std::bit_cast<uint16_t>(h);
}
void Append(std::string* to, keel_dt dt, uint64_t bits) {
  to->append(reinterpret_cast<const char*>(&bits), (dt >> 8 & 255) / 8);
}

}  // namespace

std::vector<keel_node> AllNodes(const Dims& dims) {
  std::vector<keel_node> all;
  for (const ScalarOp& op : keel::plugin::kScalarOps)
    for (keel_dt dt : kAll) {
      if (!(op.dtypes & dtypes_of(dt))) continue;
      if (op.op_class != OpClass::kCast)
        all.push_back(NodeOf(op, dt, GivesBool(op.op_class) ? keel_dt{KEEL_BOOL} : dt, dims));
      for (keel_dt to : kAll)
        if (op.op_class == OpClass::kCast) all.push_back(NodeOf(op, dt, to, dims));
    }
  AddOwn(dims, &all);
  return all;
}

std::string NameOf(const keel_node& node) {
  std::string text = node.op;
  for (const BareTensor& t : node.in) text += " " + Text(t.dtype);
  return text + " -> " + Text(node.out[0].dtype);
}

std::string SpecialElements(keel_dt dt) {
  std::string bytes;
  if (dt == KEEL_BOOL) return std::string("\0\1", 2);
  if (!bare::IsFloat(dt)) {
    for (uint64_t n : kSpecialInts) Append(&bytes, dt, n);
    return bytes;
  }
  const uint32_t bits = dt >> 8 & 255, digits = dt == KEEL_F64   ? 52
                                                : dt == KEEL_F32 ? 23
                                                : dt == KEEL_F16 ? 10
                                                                 : 7;
  const uint64_t sign = uint64_t{1} << (bits - 1), normal = uint64_t{1} << digits;
  const uint64_t infinity = BitsOf(dt, INFINITY);
  for (uint64_t s : {uint64_t{0}, sign}) {
    for (double x : kSpecialFloats) Append(&bytes, dt, s | BitsOf(dt, x));
    for (uint64_t b :
         {uint64_t{1}, normal / 2, normal - 1, normal, normal + 1, infinity - 1, infinity + normal / 2 + 1})
      Append(&bytes, dt, s | b);  // denormals, the least and largest normal numbers, a NaN with a payload
  }
  return bytes;
}

std::string Elements(keel_dt dt, int64_t n, uint32_t seed) {
  const size_t size = (dt >> 8 & 255) / 8;
  std::string bytes = SpecialElements(dt);
  std::mt19937_64 rng(seed);
  if (size == 2)
    for (uint64_t i = 0; i < 65536; i++) Append(&bytes, dt, i);
  while (bytes.size() < static_cast<size_t>(n) * size) {
    const double x =
        std::ldexp(static_cast<double>(static_cast<int64_t>(rng())), -static_cast<int>(rng() % 90));
    if (dt == KEEL_BOOL)
      Append(&bytes, dt, rng() & 1);
    else if (bare::IsFloat(dt) && rng() % 4)
      Append(&bytes, dt, BitsOf(dt, x));
    else
      Append(&bytes, dt, rng() >> rng() % 64);
  }
  bytes.resize(static_cast<size_t>(n) * size);
  return bytes;
}

}  // namespace vulkan_test
