// The module of each op for each combination of dtypes is accepted by spirv-val. The variants take turns, as
// they share nothing with an op's instructions; with KEEL_SWEEP=1 each op is built in each variant.
#include <cstdlib>
#include <fstream>

#include "cases.h"
#include "launch.h"

namespace {

using namespace vulkan_test;

// What spirv-val reports; "": nothing.
std::string Validate(const keel_spirv::Words& words) {
  const std::string path = testing::TempDir() + "keel_module.spv", log = path + ".log";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(words.data()), static_cast<int64_t>(words.size() * 4));
  const int rc =
      std::system((KEEL_SPIRV_VAL " --target-env vulkan1.3 " + path + " >" + log + " 2>&1").c_str());
  std::ifstream text(log);
  const std::string all((std::istreambuf_iterator<char>(text)), {});
  return rc == 0 ? "" : "exit status " + std::to_string(rc) + ": " + all;
}
keel_spirv::Words ModuleOf(const keel_node& node, const Variant& variant) {
  const keel_spirv::Kernel kernel = keel_spirv::MakeKernel(SpecOf(node, variant));
  EXPECT_EQ(kernel.error, "") << NameOf(node);
  return kernel.words;
}

TEST(SpirvModules, AreValid) {
  const bool sweep = std::getenv("KEEL_SWEEP") != nullptr;
  uint32_t n = 0, turn = 0;
  for (const keel_node& node : AllNodes({5, 7}))
    for (uint32_t i = 0; i < (sweep ? kVariants : 1); i++, n++) {
      const Variant v = Variant::Of(sweep ? i : turn++ % kVariants);
      EXPECT_EQ(Validate(ModuleOf(node, v)), "") << NameOf(node) << ", " << v.Name();
    }
  std::cout << n << " modules\n";
  EXPECT_GE(n, 556u);
}

TEST(SpirvModules, OfOneOpAreValidInEachVariant) {
  const BareTensor t = {KEEL_I16, {3, 4}};
  for (uint32_t i = 0; i < kVariants; i++)
    EXPECT_EQ(Validate(ModuleOf(bare::NodeBuilder("div", {t, t}, {t}).node, Variant::Of(i))), "") << i;
}

// A changed opcode is reported: the test can fail.
TEST(SpirvModules, ThatAreDamagedAreInvalid) {
  const BareTensor t = {KEEL_F32, {4}};
  keel_spirv::Words words = ModuleOf(bare::NodeBuilder("add", {t, t}, {t}).node, {});
  const auto add = std::find(words.begin(), words.end(), 5u << 16 | 129u);  // OpFAdd
  ASSERT_NE(add, words.end());
  *add = 5u << 16 | 128u;  // OpIAdd
  EXPECT_NE(Validate(words), "");
}

TEST(SpirvModules, OfRandomNumbersAreValid) {
  for (const char* kind : {"random.uniform", "random.normal"})
    for (keel_dt dt : bare::kFloats)
      EXPECT_EQ(Validate(keel_spirv::MakeKernel(keel_spirv::RandomSpec(kind, dt)).words), "") << kind;
}

}  // namespace
