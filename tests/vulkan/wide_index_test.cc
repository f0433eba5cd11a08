// wide_index_test.cc: kernels with 64-bit indices reach elements that are further apart than 4 GiB. Tensors
// of this size are too large for a test, so a stride leads from the device's buffer to a variable of this
// program: lavapipe has one address space with it.
#include "launch.h"
#include "runner.h"

namespace {

using namespace vulkan_test;
using Words = std::vector<uint64_t>;

float far_element = 2.5f;

struct WideIndex : testing::Test {
  void SetUp() override {
    if (!WhyNot().empty()) GTEST_SKIP() << WhyNot();
    if (!SharesAddresses()) GTEST_SKIP() << "the device has an address space of its own: it is no processor";
  }
};

TEST_F(WideIndex, StridesBeyond4GiB) {
  const BareTensor t = {KEEL_F32, {2}};
  const keel_node node = bare::NodeBuilder("neg", {t}, {t}).node;
  const keel_spirv::Kernel kernel =
      keel_spirv::MakeKernel(SpecOf(node, {.strided = true, .wide_index = true}));
  ASSERT_EQ(kernel.error, "");
  std::vector<std::string> buffers = {std::string(sizeof(FaultBytes), '\0'), std::string("\0\0\xc0\x3f", 4),
                                      std::string(8, '\x5a'), std::string(256, '\0')};  // x[0] is 1.5
  int64_t stride = 0;
  const auto parameters = [&](const Words& at) -> Words {
    stride = static_cast<int64_t>(reinterpret_cast<uint64_t>(&far_element) - at[1]) / 4;
    const Words words = {at[1], at[2], 0, at[0], 0, 2, 2, static_cast<uint64_t>(stride)};  // launch.h
    std::memcpy(buffers[3].data(), words.data(), 8 * words.size());
    return {at[3]};
  };
  ASSERT_EQ(RunShader(kernel.words, 1, &buffers, parameters), "");
  EXPECT_GT(std::abs(stride), int64_t{1} << 32);
  float got[2];
  std::memcpy(got, buffers[2].data(), sizeof got);
  EXPECT_EQ(got[0], -1.5f);
  EXPECT_EQ(got[1], -2.5f);
}

}  // namespace
