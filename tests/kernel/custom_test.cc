// custom_test.cc: custom gradients on arrays. Each step rewrites the backward code, yet steps that differ
// only in elements share one plan.
#include <gtest/gtest.h>

#include "kernel/program/trace/tape.h"

namespace keel {
namespace {

class CustomTest : public testing::Test {
 protected:
  CustomTest() {
    absl::Status loaded = context_->registry.LoadFile(KEEL_TEST_PLUGINS "/keel-reference.so", "");
    EXPECT_TRUE(loaded.ok()) << loaded;
    device_ = *context_->registry.FindDevice("reference");
    mul_ = *context_->catalogue->Find("mul", 0);
  }
  template <typename T>
  static ArrayRef Filled(int64_t n, T v) {
    ArrayRef a = *NewArray(std::is_same_v<T, float> ? DType::kF32 : DType::kF64, {&n, 1}, true);
    std::fill_n(reinterpret_cast<T*>(a->data()), n, v);
    return a;
  }
  // dy/dx by a backward that multiplies dy by x, `times` times, and by `captured`.
  template <typename T>
  T Step(ArrayRef x, ArrayRef captured, int times = 1) {
    Tape tape(context_, device_, {}, nullptr);
    EXPECT_TRUE(tape.Watch(x.get()).ok());
    keel_array *xs = x.get(), *ys = captured.get();
    auto backward = [&](std::shared_ptr<Trace> trace, const Results& in) -> absl::StatusOr<Results> {
      ArrayRef d = in[2];
      for (int i = 0; i <= times; i++) {
        keel_array *of[] = {d.get(), i ? in[0].get() : captured.get()}, *made = nullptr;
        RETURN_IF_ERROR(trace->Apply(*mul_, {}, "reference", of, {&made, 1}));
        d = ArrayRef(made);
      }
      return Results{d};
    };
    absl::StatusOr<Results> out = tape.Custom({"mine", {&xs, 1}, {&ys, 1}, backward});
    EXPECT_EQ(out.status(), absl::OkStatus());
    keel_array* y = (*out)[0].get();
    uint32_t to = 0;
    absl::StatusOr<Results> dx = tape.Gradient({{&y, 1}, {}, {&xs, 1}, {&to, 1}, 1});
    EXPECT_EQ(dx.status(), absl::OkStatus());
    return *reinterpret_cast<T*>((*dx)[0]->data());
  }
  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  Device* device_ = nullptr;
  const OpDef* mul_ = nullptr;
};

TEST_F(CustomTest, StepsShareOnePlan) {
  for (int i = 1; i <= 100; i++) {
    auto v = static_cast<float>(i);
    EXPECT_EQ(Step<float>(Filled(3, v), Filled(3, v + 1)), v * (v + 1)) << "each step sees its own elements";
  }
  EXPECT_EQ(context_->gradients.plans(), 1u);
  EXPECT_EQ(Step<double>(Filled(3, 2.0), Filled(3, 5.0)), 10);
  EXPECT_EQ(context_->gradients.plans(), 2u) << "another dtype";
  EXPECT_EQ(Step<float>(Filled(4, 2.f), Filled(4, 5.f)), 10);
  EXPECT_EQ(context_->gradients.plans(), 3u) << "another shape";
  EXPECT_EQ(Step<float>(Filled(3, 2.f), Filled(3, 5.f), 3), 40);
  EXPECT_EQ(context_->gradients.plans(), 4u) << "other code";
  EXPECT_EQ(Step<float>(Filled(3, 2.f), Filled(3, 5.f)), 10);
  EXPECT_EQ(context_->gradients.plans(), 4u);
}

}  // namespace
}  // namespace keel
