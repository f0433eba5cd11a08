// tape_memory_test.cc: the memory of a tape over 1,000 steps: only arrays whose elements gradient rules read,
// until the gradient is computed. Bytes count the heap; libkeel caches 16 MiB of arrays of this size
// (kernel/language/values/blocks.h), 200 of them.
#include <gtest/gtest.h>

#include <cmath>

#include "sdk/cpp/keel/keel.hpp"
#include "tests/devices.h"
#include "tests/live_bytes.h"

namespace {

using keel::Array;
using keel_test::LiveBytes;
constexpr int kSteps = 1000;
constexpr int64_t kElements = 20480;
constexpr int kIdle = 210;
constexpr double kArrayBytes = 4.0 * kElements, kFew = (kIdle + 100) * kArrayBytes;  // plans take megabytes

class TapeMemory : public testing::TestWithParam<std::string> {
 protected:
  using Handle = keel::Handle<keel_tape, keel_tape_free>;
  Handle Tape() const {
    keel_tape* out = nullptr;
    keel::call(keel_tape_new, context_.get(), GetParam().c_str(), static_cast<const keel_kv*>(nullptr), 0u,
               static_cast<keel_tape*>(nullptr), &out);
    return Handle(out);
  }
  template <class... In>
  static Array Apply(const Handle& tape, const keel::Op& op, const In&... in) {
    keel_array *ins[] = {in.get()...}, *out = nullptr;
    keel::call(keel_trace_apply, nullptr, tape.get(), op.get(), ins, static_cast<uint32_t>(sizeof...(in)),
               &out, 1u);
    return Array(out);
  }
  static Array Gradient(const Handle& tape, const Array& y, const Array& x) {
    keel_array *ys = y.get(), *xs = x.get(), *out = nullptr;
    keel::call(keel_tape_gradient, tape.get(), &ys, 1u, static_cast<keel_array* const*>(nullptr), &xs,
               nullptr, 1u, 0u, &out);
    return Array(out);
  }
  Array Filled(float value) const {
    std::vector<float> all(kElements, value);
    return Array::of<float>(context_, {&kElements, 1}, all);
  }
  // Records the op a thousand times, each on the last result; returns the arrays kept.
  template <class... More>
  double Kept(const char* name, Array* gradient, const More&... more) {
    keel::Op op(context_, GetParam(), name);
    Array x = Filled(0.5f);
    Handle tape = Tape();
    keel::call(keel_tape_watch, tape.get(), x.get(), nullptr);
    Array y = Apply(tape, op, x, more...);
    double before = LiveBytes();
    for (int i = 1; i < kSteps; i++) y = Apply(tape, op, y, more...);
    double kept = (LiveBytes() - before) / kArrayBytes;
    *gradient = Gradient(tape, y, x);
    EXPECT_LT(LiveBytes() - before, kFew) << name << ": a tape that was used up keeps nothing";
    return kept;
  }

  keel::Context context_ = keel_test::Open(GetParam());
};

TEST_P(TapeMemory, WhatNoRuleReadsIsNotKept) {
  Array gradient;
  EXPECT_LT(Kept("add", &gradient, Filled(0.25f)), 10);
  EXPECT_EQ(gradient.values<float>()[7], 1);
  EXPECT_LT(Kept("neg", &gradient), 10);
  EXPECT_EQ(gradient.values<float>()[7], 1) << "an even number of times";
}

TEST_P(TapeMemory, WhatARuleReadsIsKeptOnce) {
  Array gradient;
  double kept = Kept("relu", &gradient);  // its result
  EXPECT_GT(kept, kSteps - kIdle);
  EXPECT_LT(kept, kSteps + 10);
  EXPECT_EQ(gradient.values<float>()[7], 1);
  kept = Kept("mul", &gradient, Filled(1));  // the other operand is not watched, so it needs no gradient
  EXPECT_LT(kept, 1.1 * kSteps);
  EXPECT_EQ(gradient.values<float>()[7], 1);
}

TEST_P(TapeMemory, ResetForgets) {
  keel::Op relu(context_, GetParam(), "relu");
  Array x = Filled(1);
  Handle tape = Tape();
  double before = LiveBytes();
  keel::call(keel_tape_watch, tape.get(), x.get(), nullptr);
  for (int i = 0; i < kSteps; i++) x = Apply(tape, relu, x);
  EXPECT_GT(LiveBytes() - before, (kSteps - kIdle) * kArrayBytes);
  keel_tape_reset(tape.get());
  EXPECT_LT(LiveBytes() - before, kFew);
}

// A training loop with a tape for each step: the last step uses as much memory as the tenth.
TEST_P(TapeMemory, AThousandTrainingStepsDoNotGrow) {
  keel::Op mul(context_, GetParam(), "mul"), sub(context_, GetParam(), "sub"),
      relu(context_, GetParam(), "relu");
  Array w = Filled(0.5f), rate = Filled(0.001f);
  double after_ten = 0;
  for (int i = 0; i < kSteps; i++) {
    Handle tape = Tape();
    keel::call(keel_tape_watch, tape.get(), w.get(), nullptr);
    Array loss = Apply(tape, mul, Apply(tape, relu, w), w);  // w * w
    w = sub.one(w, mul.one(Gradient(tape, loss, w), rate));
    if (i == 9) after_ten = LiveBytes();
  }
  EXPECT_LT(LiveBytes() - after_ten, 2 * kArrayBytes);
  EXPECT_NEAR(w.values<float>()[7], 0.5 * std::pow(0.998, kSteps), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Devices, TapeMemory, testing::ValuesIn(keel_test::Devices()),
                         [](const auto& i) { return i.param; });

}  // namespace
