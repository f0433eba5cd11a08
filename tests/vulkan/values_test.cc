// Results of each op on lavapipe (or the first device): special elements of each dtype and random ones,
// against the reference device, whose functions have more digits than their results.
#include "cases.h"
#include "launch.h"
#include "runner.h"

namespace {

using namespace vulkan_test;

const bare::Plugin& Reference() {
  static const bare::Plugin plugin("reference");
  return plugin;
}

// Units in the last place by which f32 and f64 may differ from the nearest value. f16 and bf16: rounded from
// such an f32, so the next element at most.
double UlpsOf(const std::string& op, keel_dt dt) {
  static const std::map<std::string, double> kUlps = {
      {"exp", 2}, {"log", 2},   {"log1p", 2}, {"sin", 2},     {"cos", 2},      {"tanh", 2}, {"erf", 3},
      {"pow", 2}, {"rsqrt", 1}, {"silu", 4},  {"sigmoid", 3}, {"softplus", 3}, {"gelu", 8}};
  const auto it = kUlps.find(op);
  return it == kUlps.end() ? 0 : dt == KEEL_F16 || dt == KEEL_BF16 ? 1 : it->second;
}

// The element's place in the order of its dtype's values; both zeros have place 0.
int64_t PlaceOf(const std::string& bytes, size_t size, int64_t i) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + static_cast<size_t>(i) * size, size);
  const uint64_t sign = uint64_t{1} << (size * 8 - 1);
  return bits & sign ? -static_cast<int64_t>(bits & ~sign) : static_cast<int64_t>(bits);
}
double Distance(int64_t a, int64_t b) { return std::fabs(static_cast<double>(static_cast<__int128>(a) - b)); }
bool IsNan(const std::string& bytes, keel_dt dt, int64_t i) { return std::isnan(bare::Get(bytes, dt, i)); }

// Elements that differ by more; the first is described.
int64_t Differences(const keel_node& node, const std::vector<std::string>& in, const std::string& got,
                    const std::string& want, std::string* first) {
  const BareTensor& t = node.out[0];
  const size_t size = static_cast<size_t>(t.Size());
  const double ulps = UlpsOf(node.op, t.dtype);
  int64_t n = 0;
  for (int64_t i = 0; i < t.Count(); i++) {
    const int64_t a = PlaceOf(got, size, i), b = PlaceOf(want, size, i);
    const std::string_view x(got.data() + i * t.Size(), size), y(want.data() + i * t.Size(), size);
    if (x == y) continue;
    if (bare::IsFloat(t.dtype)) {
      if (IsNan(got, t.dtype, i) || IsNan(want, t.dtype, i)) {
        if (IsNan(got, t.dtype, i) && IsNan(want, t.dtype, i)) continue;
      } else if (a != b && Distance(a, b) <= ulps) {
        continue;
      }
    }
    if (n++ != 0) continue;
    std::ostringstream text;
    text << std::hexfloat << "element " << i << ":";
    for (size_t k = 0; k < in.size(); k++)
      text << " " << bare::Get(in[k], node.in[k].dtype, node.in[k].Count() == 1 ? 0 : i);
    text << " gives " << bare::Get(got, t.dtype, i) << ", expected " << bare::Get(want, t.dtype, i);
    *first = text.str();
  }
  return n;
}

void Check(const keel_node& node, const std::vector<std::string>& in, const std::string& want,
           const Variant& variant = {}) {
  std::string first;
  const std::string got = RunKernel(node, variant, in)[0];
  const int64_t n = Differences(node, in, got, want, &first);
  EXPECT_EQ(n, 0) << NameOf(node) << ", " << variant.Name() << ": " << first;
}
void CheckByReference(const keel_node& node, const std::vector<std::string>& in) {
  Check(node, in, bare::Run(Reference(), node, in)[0]);
}

// ---- operands: every pair of special elements, then random ones

std::string Repeat(const std::string& bytes, size_t size, int64_t n, int64_t each) {
  std::string out;
  const int64_t count = static_cast<int64_t>(bytes.size() / size);
  for (int64_t i = 0; i < n; i++) out.append(bytes, static_cast<size_t>(i / each % count) * size, size);
  return out;
}
std::vector<std::string> Operands(const keel_node& node) {
  std::vector<std::string> in;
  int64_t each = 1;
  for (size_t i = 0; i < node.in.size(); i++) {
    const BareTensor& t = node.in[i];
    const std::string special = SpecialElements(t.dtype);
    const size_t size = static_cast<size_t>(t.Size());
    const int64_t count = static_cast<int64_t>(special.size() / size), n = t.Count();
    const int64_t paired = node.in.size() == 1 ? 0 : std::min<int64_t>(n / 2, 10000);
    const std::string random = Elements(t.dtype, n, static_cast<uint32_t>(7 + i));
    in.push_back(Repeat(special, size, paired, each) + random.substr(static_cast<size_t>(paired) * size));
    each *= count;
  }
  return in;
}
// Elements where the op fails are replaced: the reference device stops there.
void AvoidFaults(const keel_node& node, std::vector<std::string>* in) {
  if (node.in.size() != 2 || bare::IsFloat(node.in[0].dtype)) return;
  const bool division = node.op == "div" || node.op == "mod" || node.op == "rem";
  const size_t size = static_cast<size_t>(node.in[0].Size());
  const std::string zero(size, '\0'), one = "\1" + std::string(size - 1, '\0');
  for (size_t at = 0; at < (*in)[0].size(); at += size) {
    const bool power = node.op == "pow" && (*in)[0].compare(at, size, zero) == 0;
    if (power || (division && (*in)[1].compare(at, size, zero) == 0))
      (*in)[power ? 0 : 1].replace(at, size, one);
  }
}

struct SpirvValues : testing::Test {
  void SetUp() override {
    if (!WhyNot().empty()) GTEST_SKIP() << WhyNot();
  }
};

// 16 bits: each element; else each pair of special ones and some more.
TEST_F(SpirvValues, OfPrimitives) {
  int64_t n = 0;
  const std::vector<keel_node> many = AllNodes({70001}), few = AllNodes({20001});
  for (size_t i = 0; i < many.size(); i++) {
    const keel_node& node = (many[i].in.back().dtype >> 8 & 255) == 16 ? many[i] : few[i];
    const auto tanh = node.attrs.find("tanh");
    if (tanh != node.attrs.end() && tanh->second.i)
      continue;  // its bound depends on x: conformance/test_ends.py
    if (Reference().Find(node) == nullptr) continue;
    std::vector<std::string> in = Operands(node);
    AvoidFaults(node, &in);
    CheckByReference(node, in);
    n++;
  }
  std::cout << n << " ops and dtypes\n";
  EXPECT_GE(n, 500);
}

// Operands of each dtype, broadcast along the first, a middle and the last dim, in each variant.
TEST_F(SpirvValues, OfVariants) {
  uint32_t n = 0;
  for (keel_dt dt :
       {KEEL_BOOL, KEEL_I8, KEEL_U16, KEEL_I32, KEEL_U64, KEEL_F16, KEEL_BF16, KEEL_F32, KEEL_F64})
    for (uint32_t i = 0; i < kVariants; i++) {
      const Variant variant = Variant::Of(i);
      const Dims whole = {5, 6, 7};
      std::vector<Dims> others = {whole, {}};
      if (variant.strided) others.insert(others.end(), {{1, 6, 7}, {5, 1, 7}, {5, 6, 1}, {7}, {6, 1}});
      for (const Dims& dims : others) {
        const BareTensor a = {dt, whole}, b = {dt, dims};
        const keel_node node = bare::NodeBuilder("equal", {a, b}, {{KEEL_BOOL, whole}}).node;
        const std::vector<std::string> in = {Elements(dt, a.Count(), 1), Elements(dt, b.Count(), 1)};
        Check(node, in, bare::Run(Reference(), node, in)[0], variant);
        n++;
      }
    }
  std::cout << n << " operands\n";
  EXPECT_EQ(n, 9u * 2 * (2 + 7));
}

}  // namespace
