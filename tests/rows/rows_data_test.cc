// rows_data_test.cc: the examples of data and devices (Z10, Z13) and of files that stay readable (V14).
#include "tests/rows/rows.h"

namespace {

using keel::Tensor;
using sdk_test::Failure;
using sdk_test::Has;

TEST_P(Rows, Z10_FromSlices) {
  std::vector<float> images(6);
  for (size_t i = 0; i < images.size(); i++) images[i] = static_cast<float>(i);
  Tensor labels = {7, 8, 9};
  std::string seen;
  for (const auto& [image, label] : keel::data::from_slices(Tensor(images, {3, 2}), labels))
    seen += Printed(image * 2, " is ", label, "; ");
  EXPECT_EQ(seen, "[0. 2.] is 7; [4. 6.] is 8; [ 8. 10.] is 9; ");
}

// Data are created on the host; there is one kind of tensor, on any device.
TEST_P(Rows, Z13_TensorsLiveOnAnyDevice) {
  Tensor x = {1, 2}, there = x.to(GetParam());
  EXPECT_EQ(x.device(), "");
  EXPECT_EQ(there.device(), sdk_test::MemoryOf(GetParam()));
  Tensor y = there + there;
  EXPECT_EQ(y.device(), there.device());
  EXPECT_EQ(y.to("").device(), "");
  EXPECT_EQ(y.values<int>(), (std::vector<int>{2, 4}));
  EXPECT_EQ(Printed(y), "[2 4]");
}

// tests/data keeps files in their original form; each contains the expected answers.
TEST_P(Rows, V14_OldFilesStayReadable) {
  keel::Module old = keel::Module::load(keel::default_context(), KEEL_TEST_DATA "/digits.keel");
  keel::Plan plan = keel::Session(old, GetParam(), {{"entry", "mlp"}}).prepare();
  std::vector<uint8_t> images(2 * 64, 3);
  EXPECT_EQ(Tensor(plan.run(std::vector{Tensor(images, {2, 64}).array()})[0]).type(), "f32[2, 10]");
  std::string newer = Failure([] { keel::Module::parse(keel::default_context(), "keel 2\n"); });
  EXPECT_TRUE(Has(newer, "version 2 of the text form; this reader supports version 1")) << newer;
}

}  // namespace
