// rows_functions_test.cc: examples about functions in C++: branches, effects, tracing and retracing; see
// README.md.
#include "tests/rows/rows.h"

namespace {

using keel::Tensor;

TEST_P(Rows, T5_OuterCallsInner) {
  auto inner = [](Tensor x, const Tensor& y, const Tensor& b) {
    x = keel::matmul(x, y);
    return x + b;
  };
  auto outer = keel::function("outer_function", [&](const Tensor& x) {
    Tensor y = {{2.}, {3.}}, b = 4.;
    return inner(x, y, b);
  });
  Tensor result = outer(Tensor{{1., 2.}});
  EXPECT_EQ(Printed(result), "[[12.]]");
  EXPECT_EQ(result.type(), "f32[1, 1]");
}

Tensor SimpleRelu(const Tensor& x) {
  return keel::cond(
      x > 0, [&] { return x; }, [] { return 0; });
}
TEST_P(Rows, T6_SimpleRelu) {
  auto relu = keel::function("simple_relu", SimpleRelu);
  EXPECT_EQ(Printed("First branch, with graph: ", relu(Tensor(1))), "First branch, with graph: 1");
  EXPECT_EQ(Printed("Second branch, with graph: ", relu(Tensor(-1))), "Second branch, with graph: 0");
  EXPECT_EQ(Printed(relu(Tensor(1.5)), " ", relu(Tensor(-1.5))), "1.5 0.0");
}

TEST_P(Rows, T8_TheGraphOfABranch) {
  std::string text = keel::function("simple_relu", SimpleRelu, {.args = {"x"}}).concrete(Tensor(1)).text();
  EXPECT_EQ(text, R"(keel 1

fn @simple_relu(x: i32[]) -> i32[] {
  v0 = greater(x, 0) : bool[]
  v1 = cond(v0, x)
    then(p0) {
      yield p0
    }
    else(p0) {
      yield i32(0)
    } : i32[]
  return v1
}

entry simple_relu = @simple_relu (x) -> (_)
)");
}

TEST_P(Rows, T16_OnlyObservableEffectsRun) {
  std::string printed;
  keel::default_context().print_to([](void* to, int32_t, const char* text,
                                      uint64_t size) { static_cast<std::string*>(to)->append(text, size); },
                                   &printed);
  keel::Variable v(Tensor(0));
  auto f = keel::function("f", [&](const Tensor& x) {
    keel::gather(x, {1});  // pruned: it would fail
    keel::print("x is {}", {x});
    keel::assert_(keel::reduce_max(x) < 9, "too large");
    v.assign_add(1);
    return x * 2;
  });
  EXPECT_EQ(Printed(f(Tensor{3})), "[6]");
  EXPECT_EQ(Printed(v, " ", printed), "1 x is [3]\n");
  EXPECT_NE(sdk_test::Failure([&] { f(Tensor{9}); }).find("too large"), std::string::npos);
  EXPECT_EQ(Printed(v, " ", printed), "1 x is [3]\nx is [9]\n");
  keel::default_context().print_to(nullptr, nullptr);
}

TEST_P(Rows, T9_MyRelu) {
  auto my_relu = keel::function("my_relu", [](const auto& x) { return keel::maximum(0., x); });
  EXPECT_EQ(Printed(my_relu(Tensor(5.5))), "5.5");
  Tensor list = my_relu(std::vector{1, -1});
  EXPECT_EQ(Printed(list), "[1. 0.]");
  EXPECT_EQ(list.type(), "f32[2]");
  EXPECT_EQ(Printed(my_relu(Tensor{3., -3.})), "[3. 0.]");
  EXPECT_EQ(my_relu.trace_count(), 3);
}

TEST_P(Rows, T10_NoNewGraph) {
  auto my_relu = keel::function("my_relu", [](const auto& x) { return keel::maximum(0., x); });
  my_relu(Tensor(5.5));
  my_relu(std::vector{1, -1});
  my_relu(Tensor{3., -3.});
  EXPECT_EQ(Printed(my_relu(Tensor(-2.5))), "0.0");
  EXPECT_EQ(Printed(my_relu(Tensor{-1., 1.})), "[0. 1.]");
  EXPECT_EQ(my_relu.trace_count(), 3);
}

Tensor GetMse(const Tensor& truth, const Tensor& guess) {
  return keel::reduce_mean(keel::pow(truth - guess, 2));
}
const std::vector<int32_t> kTruth{1, 0, 4, 4, 7}, kGuess{3, 6, 3, 0, 6};

TEST_P(Rows, T12_MseOfIntegers) {
  Tensor error = keel::function("get_MSE", GetMse)(Tensor(kTruth), Tensor(kGuess));
  EXPECT_EQ(Printed(error, " ", error.type()), "11 i32[]");
}

TEST_P(Rows, T13_MseRunEagerly) {
  auto f = keel::function("get_MSE", GetMse);
  keel::run_eagerly(true);
  EXPECT_EQ(Printed(f(Tensor(kTruth), Tensor(kGuess))), "11");
  EXPECT_EQ(f.trace_count(), 0);
  keel::run_eagerly(false);
  EXPECT_EQ(Printed(f(Tensor(kTruth), Tensor(kGuess))), "11");
  EXPECT_EQ(f.trace_count(), 1);
}

// A counter in the code replaces Python's print.
TEST_P(Rows, T14_EffectsOfTheHostHappenWhileTracing) {
  int calculating = 0;
  auto f = keel::function("get_MSE", [&](const Tensor& a, const Tensor& b) {
    calculating++;
    return GetMse(a, b);
  });
  for (int i = 0; i < 3; i++) f(Tensor(kTruth), Tensor(kGuess));
  EXPECT_EQ(calculating, 1);
}

TEST_P(Rows, T15_AndEachTimeWhenRunEagerly) {
  int calculating = 0;
  auto f = keel::function("get_MSE", [&](const Tensor& a, const Tensor& b) {
    calculating++;
    return GetMse(a, b);
  });
  keel::run_eagerly(true);
  for (int i = 0; i < 3; i++) f(Tensor(kTruth), Tensor(kGuess));
  keel::run_eagerly(false);
  EXPECT_EQ(calculating, 3);
}

Tensor UnusedReturn(const Tensor& x) {
  keel::gather(x, {1});  // fails at run time: x has one element
  return x;
}
TEST_P(Rows, T17_EagerGatherOutOfRangeFails) {
  try {
    UnusedReturn(Tensor{0.});
    EXPECT_NE(sdk_test::MemoryOf(GetParam()), "");
    keel::gather(Tensor{0.}, {1})
        .values<double>();  // a device with memory of its own says so where a result is read
    FAIL();
  } catch (const keel::Error& e) {
    EXPECT_EQ(e.code(), KEEL_RANGE) << e.what();
    EXPECT_NE(std::string(e.what()).find("index 1 is not in [0, 1)"), std::string::npos) << e.what();
  }
}
TEST_P(Rows, T18_AnUnusedGatherIsPruned) {
  Tensor y = keel::function("unused_return_graph", UnusedReturn)(Tensor{0.});
  EXPECT_EQ(Printed(y, " ", y.type()), "[0.] f32[1]");
}

Tensor Power(const Tensor& x, int n) {
  Tensor y = x;
  for (int i = 1; i < n; i++) y = keel::matmul(y, x);
  return y;
}
TEST_P(Rows, T20_PowerWraps) {
  Tensor x = {{1, 1}, {1, 0}};
  const char* wanted = "[[  764848393  1820529360]\n [ 1820529360 -1055680967]]";
  EXPECT_EQ(Printed(Power(x, 60)), wanted);
  EXPECT_EQ(Printed(keel::function("power", Power)(x, 60)), wanted);
}

TEST_P(Rows, T22_TensorsDoNotRetrace) {
  int tracing = 0;
  auto f = keel::function("f", [&](const Tensor& x) {
    tracing++;
    return x * x + 2;
  });
  EXPECT_EQ(Printed(f(Tensor(2)), " ", f(Tensor(3))), "6 11");
  EXPECT_EQ(tracing, 1);
}

TEST_P(Rows, T23_T24_NewNumbersAreNewGraphs) {
  int tracing = 0;
  auto f = keel::function("f", [&](int x) {
    tracing++;
    return x * Tensor(x) + 2;
  });
  EXPECT_EQ(Printed(f(2)), "6");
  EXPECT_EQ(tracing, 1);
  EXPECT_EQ(Printed(f(3)), "11");
  EXPECT_EQ(tracing, 2);
  f(2);
  EXPECT_EQ(tracing, 2);
}

TEST_P(Rows, T25_RandomAndEye) {
  Tensor five = keel::random_uniform(7, 0, 10, {5}), hundred = keel::random_uniform(8, -1, 3, {10, 10});
  EXPECT_EQ(five.type() + hundred.type(), "i32[5]i32[10, 10]");
  for (int v : five.values<int32_t>()) EXPECT_TRUE(v >= 0 && v < 10) << v;
  for (int v : hundred.values<int32_t>()) EXPECT_TRUE(v >= -1 && v < 3) << v;
  EXPECT_TRUE(same(five, keel::random_uniform(7, 0, 10, {5})));
  EXPECT_FALSE(same(five, keel::random_uniform(9, 0, 10, {5})));
  keel::set_seed(1);  // optional, like TensorFlow's calls without a key
  Tensor seeded = keel::random_uniform({5}, {.high = 10, .dtype = KEEL_I32});
  keel::set_seed(1);
  EXPECT_TRUE(same(seeded, keel::random_uniform({5}, {.high = 10, .dtype = KEEL_I32})));
  Tensor eye = keel::eye(10, {.dtype = KEEL_I32});
  EXPECT_EQ(keel::reduce_sum(eye).item<int>(), 10);
  EXPECT_EQ(Printed(keel::eye(2, {.dtype = KEEL_I32})), "[[1 0]\n [0 1]]");
}

TEST_P(Rows, T26_SignaturesAvoidRetracing) {
  auto f = keel::function("f", [](const Tensor& x) { return x + 1; }, {.signature = "x: f32[n]"});
  for (int64_t n = 1; n < 6; n++) EXPECT_EQ(f(keel::zeros({n})).size(), n);
  EXPECT_EQ(f.trace_count(), 1);
}

}  // namespace
