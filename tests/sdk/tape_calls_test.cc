// tape_calls_test.cc: keel::Tape around calls of functions, and tapes inside of them. Oracles are literals
// worked out by hand.
#include "tapes.h"

namespace {

using namespace sdk_test;

TEST_P(Tapes, AroundCallsThatReadVariables) {
  Variable w({{1.f, 2.f}, {3.f, 4.f}}, {.name = "w"}), n(Tensor{5});
  Tensor scale = {{10.f, 1.f}};
  auto f = keel::function("f", [&](const Tensor& x) {
    n.assign_add(Tensor{1});
    return keel::matmul(x, w) * scale;
  });
  Tensor x = {{1.f, -1.f}};
  for (int k = 0; k < 2; k++) {
    Tape tape;
    tape.watch(x);
    tape.watch(scale);
    Tensor y = f(x);  // [-20 -2]
    Tensor twice = y + keel::matmul(x, w);
    Tensors d = tape.gradient(twice, {x, w, scale});
    EXPECT_EQ(Text(y), "[[-20.  -2.]]");
    EXPECT_EQ(Text(d[0]), "[[15. 41.]]");
    EXPECT_EQ(Text(d[1]), "[[ 11.   2.]\n [-11.  -2.]]");
    EXPECT_EQ(Text(d[2]), "[[-2. -2.]]");
  }
  EXPECT_EQ(Text(n), "[7]") << "each call runs once";
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_TRUE(Has(f.report(), "\"variables\":[\"v0\",\"w\"],\"captures\":[\"i32[1]\",\"f32[1, 2]\"]"))
      << f.report();
}

TEST_P(Tapes, InnerFunctionsAndNoRecordInThem) {
  Variable w({2.f});
  auto inner = keel::function("inner", [&](const Tensor& x) {
    Tensor hidden;
    {
      auto none = keel::no_record();
      hidden = x * w;
    }
    return hidden * w * x;
  });
  Both(
      [&](const Tensor& x) {
        Tape tape;
        tape.watch(x);
        return tape.gradient(inner(x), {x, w});
      },
      {"[12.]", "[18.]"});
  Both(
      [&](const Tensor& x) {
        Tape tape;
        tape.watch(x);
        Tensor y;
        {
          auto none = keel::no_record();
          y = inner(x);
        }
        return tape.gradient(y, {x, w}, {.zeros = true});
      },
      {"[0.]", "[0.]"});
}

TEST_P(Tapes, ATapeAroundDoesNotSeeIntoANewTrace) {
  Variable w({2.f});
  Tape tape;
  auto f = keel::function("f", [&](const Tensor& x) {
    Tape own;
    return own.gradient(w * w * x, w);
  });
  Tensor d = f(Tensor{3.f});  // 2 w x
  EXPECT_EQ(Text(d), "[12.]");
  EXPECT_EQ(Text(tape.gradient(d, w)), "[6.]");
}

// The function is traced while its caller records: a graph for all calls hides the same operations.
TEST_P(Tapes, StopRecordingInAFunctionThatIsTracedWhileRecording) {
  Variable w({2.f});
  Tape* stopped = nullptr;
  auto f = keel::function("f", [&](const Tensor& x) {
    Tensor hidden;
    {
      auto stop = stopped->stop_recording();
      hidden = x * w;
    }
    return hidden * w * x;  // to the tape: (x w) w x with the first two factors fixed
  });
  for (bool eagerly : {false, false, true}) {
    Tape tape;
    tape.watch(three_);
    stopped = &tape;
    f.run_eagerly(eagerly);
    Tensors d = tape.gradient(f(three_), {three_, w});
    EXPECT_EQ(Text(d[0]) + Text(d[1]), "[12.][18.]") << eagerly;
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(Tapes, OwnTapesOfATracedFunctionStopAsEagerly) {
  auto f = keel::function("f", [&](const Tensor& x) {
    Tape outer, inner;
    outer.watch(x);
    inner.watch(x);
    Tensor hidden;
    {
      auto stop = inner.stop_recording();
      hidden = x * x;
    }
    Tensor y = hidden * x;
    return Tensors{inner.gradient(y, x), outer.gradient(y, x)};
  });
  Tape around;
  around.watch(three_);
  for (bool eagerly : {false, true}) {
    f.run_eagerly(eagerly);
    Tensors d = f(three_);
    EXPECT_EQ(Text(d[0]) + Text(d[1]), "[9.][27.]") << eagerly;
  }
}

// The gradient of a call with symbolic sizes that itself computes gradients, so that dims are attributes.
TEST_P(Tapes, AroundATraceForAnySize) {
  auto f = keel::function("f", [](const Tensor& x) {
    Tape own;
    own.watch(x);
    return own.gradient(keel::reduce_mean(x * x * x), x);  // 3 x^2 / n
  });
  for (size_t n : {2, 3, 4, 5}) {
    Tensor x(std::vector<float>(n, 2.f));
    Tape tape;
    tape.watch(x);
    Tensor d = f(x), dd = tape.gradient(d, x);  // 6 x / n
    EXPECT_EQ(d.values<float>(), std::vector<float>(n, 12.f / static_cast<float>(n)));
    EXPECT_EQ(dd.values<float>(), std::vector<float>(n, 12.f / static_cast<float>(n)));
  }
  EXPECT_EQ(f.trace_count(), 3);
}

TEST_P(Tapes, RunEagerlyUnderATape) {
  Variable w({2.f});
  auto f = keel::function("f", [&](const Tensor& x) { return w * x; });
  f.run_eagerly();
  Tape tape({.persistent = true});
  EXPECT_EQ(Text(tape.gradient(f(Tensor{3.f}), w)), "[3.]");
  keel::Eagerly now;
  EXPECT_EQ(Text(tape.gradient(f(Tensor{4.f}), w)), "[4.]");
}

}  // namespace
