// rows_test.cc: the example programs in C++, named by their ids; see README.md.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <keel/keel.hpp>

#include "tests/rows/rows.h"

KEEL_ON_EACH_DEVICE(Rows);  // once for the files of this folder

namespace {

using keel::Tensor;

TEST_P(Rows, V1_HelloMatmul) {
  Tensor x = {{2.}};
  EXPECT_EQ(Printed("hello, ", keel::matmul(x, x)), "hello, [[4.]]");
}

TEST_P(Rows, V2_ValuesAtOnceAndErrorsThatTell) {
  Tensor x = Tensor{{1.f, 2.f}} + 1;
  EXPECT_EQ(x.values<float>(), (std::vector<float>{2, 3}));
  try {
    keel::matmul(x, x);
    FAIL();
  } catch (const keel::Error& e) {
    EXPECT_TRUE(std::string(e.what()).starts_with("matmul(f32[1, 2], f32[1, 2]): ")) << e.what();
    EXPECT_TRUE(std::string(e.what()).ends_with("(rows_test.cc:" + std::to_string(__LINE__ - 4) + ")"))
        << e.what();
    EXPECT_EQ(e.op(), "matmul");
  }
}

Tensor ARegularFunction(Tensor x, const Tensor& y, const Tensor& b) {
  x = keel::matmul(x, y);
  x = x + b;
  return x;
}

TEST_P(Rows, V10_T4_TracedEqualsEager) {
  auto f = keel::function("a_regular_function", ARegularFunction);
  Tensor x = {{2.}}, y = {{4.}}, b = {{4.}};
  Tensor original = ARegularFunction(x, y, b), traced = f(x, y, b);
  EXPECT_TRUE(original == traced);
  EXPECT_EQ(Printed(original), "[[12.]]");
  EXPECT_EQ(Printed(traced), "[[12.]]");
}

TEST_P(Rows, V3_TheSameCodeOnOtherHardware) {
  auto f = keel::function("a_regular_function", ARegularFunction);
  Tensor x = {{2.}}, y = {{4.}}, b = {{4.}};
  for (const Tensor& result : {ARegularFunction(x, y, b), f(x, y, b)}) {
    EXPECT_EQ(result.device(), sdk_test::MemoryOf(GetParam()));
    EXPECT_EQ(Printed(result), "[[12.]]");
  }
}

// Ops of a scope are placed on its device: at once, and in a function that is placed elsewhere.
TEST_P(Rows, Z11_DevicesByName) {
  auto f = keel::function("f", [](const Tensor& x) {
    keel::Scope on = keel::device("reference:0");
    return x + 1;
  });
  Tensor x = {1, 2};
  EXPECT_EQ(Printed(f(x)), "[2 3]");
  const bool placed = f.concrete(x).text().find("@\"reference:0\"") != std::string::npos;
  EXPECT_EQ(placed, GetParam() != "reference") << f.concrete(x).text();
  EXPECT_TRUE(sdk_test::Has(sdk_test::Failure([] { keel::Scope nowhere = keel::device("gpu:7"); }),
                            "no device \"gpu:7\""));
}
TEST_P(Rows, V5_RunsWithoutPython) {
  std::ifstream maps("/proc/self/maps");
  ASSERT_TRUE(maps.is_open());
  for (std::string line; std::getline(maps, line);) EXPECT_EQ(line.find("libpython"), std::string::npos);
}

keel::Module Chain() {
  return keel::Module::parse(keel::default_context(),
                             "keel 1\nfn @g(x: i32[]) {\n  y = add(x, 1)\n  z = mul(y, 2)\n  return z\n}\n"
                             "entry g = @g (x) -> (z)\n");
}
TEST_P(Rows, Z1_SessionsFeedAndFetch) {
  keel::Session session(Chain(), GetParam());
  keel::Plan plan = session.prepare(std::vector<std::string>{"y"}, std::vector<std::string>{"z"});
  EXPECT_EQ(Printed(Tensor(plan.run(std::vector{Tensor(10).array()})[0])), "20");
  EXPECT_EQ(Printed(session.run("z", {{"x", 3}})), "8");
}
TEST_P(Rows, K2_ValuesBetweenCanBeSeen) {
  keel::Plan plan = keel::Session(Chain(), GetParam(), {{"observe", "1"}}).prepare();
  std::string seen;
  plan.run_observed(std::vector{Tensor(3).array()}, [&](const keel_event& event) {
    seen += std::string(event.out_names[0]) + "=" +
            Printed(Tensor(keel::Array::copy_of(keel::default_context(), *event.out[0]))) + " ";
    return false;
  });
  EXPECT_EQ(seen, "y=4 z=8 ");
}

TEST_P(Rows, V6_ConstantsAreFolded) {
  keel::Module module = keel::Module::parse(
      keel::default_context(),
      "keel 1\nfn @f(x: f32[2]) {\n  return x * (f32(1.0) + f32(1.0))\n}\nentry f = @f (x) -> (y)\n");
  EXPECT_NE(module.text().find("add("), std::string::npos);
  module.optimize("f", GetParam(), {{"passes", "fold"}});
  EXPECT_EQ(module.text().find("add("), std::string::npos) << module.text();
  keel::Plan plan = keel::Session(module, GetParam()).prepare();
  EXPECT_EQ(Printed(Tensor(plan.run(std::vector{Tensor{1.f, 2.f}.array()})[0])), "[2. 4.]");
}

TEST_P(Rows, V8_EqualNodesAreOne) {
  auto count = [](const std::string& text, const std::string& what) {
    size_t n = 0;
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at++) n++;
    return n;
  };
  keel::Module module = keel::Module::parse(
      keel::default_context(),
      "keel 1\nvar v: f32[] = 1.0\nfn @f(x: f32[]) {\n  a = read(v) + exp(x)\n  b = read(v) + exp(x)\n"
      "  assign_add(v, x)\n  c = read(v) + exp(x)\n  return a, b, c\n}\nentry f = @f (x) -> (a, b, c)\n");
  module.optimize("f", GetParam(), {{"passes", "cse"}});
  EXPECT_EQ(count(module.text(), " = exp("), 1u) << module.text();
  EXPECT_EQ(count(module.text(), " = read("), 2u) << "a write is between the reads";
  EXPECT_EQ(count(module.text(), " = add("), 2u);
  keel::Plan plan = keel::Session(module, GetParam()).prepare();
  std::vector<keel::Array> out = plan.run(std::vector{Tensor(0.f).array()});
  EXPECT_EQ(Printed(Tensor(out[0]), Tensor(out[1]), Tensor(out[2])), "2.02.02.0");
}

TEST_P(Rows, K6_MnistBecomesRows) {
  Tensor x = keel::cast(keel::zeros({60000, 28, 28}, KEEL_U8) + 7, KEEL_F32);
  Tensor rows = keel::reshape(x, {-1, 784});
  EXPECT_EQ(rows.type(), "f32[60000, 784]");
  EXPECT_EQ(Printed(keel::reduce_sum(rows[59999])), "5488.0");
}

TEST_P(Rows, V11_NoSessionNoPlaceholder) {
  auto f = keel::function("f", [](const Tensor& x) { return x * 2; });
  EXPECT_EQ(Printed(f(Tensor{1, 2})), "[2 4]");
}

TEST_P(Rows, V12_RunFunctionsEagerly) {
  int runs = 0;
  auto f = keel::function("f", [&](const Tensor& x) {
    runs += !x.symbolic();
    return x + 1;
  });
  keel::run_eagerly(true);
  EXPECT_EQ(Printed(f(Tensor(1)), f(Tensor(2))), "23");
  keel::run_eagerly(false);
  EXPECT_EQ(Printed(f(Tensor(1)), f(Tensor(2))), "23");
  EXPECT_EQ(runs, 2);
}

TEST_P(Rows, V13_EagerIsTheDefault) { EXPECT_FALSE((Tensor{1} + 1).symbolic()); }

TEST_P(Rows, V15_OneProgramBothWays) {
  auto code = [](const Tensor& x) { return keel::softmax(keel::tanh(x) * 3); };
  Tensor x = keel::random(3, {4, 5});
  EXPECT_TRUE(same(code(x), keel::function("f", code)(x)));
}

TEST_P(Rows, V9_ReportsWhatBuildingCosts) {
  auto f = keel::function("f", [](const Tensor& x) { return x + 1; });
  f(Tensor(1));
  for (const char* part : {"\"trace_ms\":", "\"plan_ms\":", "\"reason\":\"first call\""})
    EXPECT_NE(f.report().find(part), std::string::npos) << f.report();
}

TEST_P(Rows, Z12_T1_ASavedGraphRunsWithoutItsSource) {
  std::string path = testing::TempDir() + "rows" + std::to_string(getpid()) + ".keel";
  keel::function("f", [](const Tensor& x) { return x * 2 + 1; }).concrete(Tensor{1.f, 2.f}).save(path);
  keel::Context fresh;
  fresh.scan_plugins();
  keel::Module loaded = keel::Module::load(fresh, path);
  std::filesystem::remove(path);
  keel::Plan plan = keel::Session(loaded, keel::detail::here().device()).prepare();
  EXPECT_EQ(Printed(Tensor(plan.run(std::vector{Tensor{5.f, 6.f}.array()})[0])), "[11. 13.]");
}

TEST_P(Rows, Z6_PlainIf) {
  Tensor x = {3};
  EXPECT_EQ(x > 2 ? "more" : "less", std::string("more"));
  EXPECT_EQ(static_cast<int>(x) + static_cast<double>(x), 6.0);
}

TEST_P(Rows, Z15_AddAndMultiply) {
  Tensor a = {{1, 2}, {3, 4}};
  Tensor b = keel::add(a, 1);
  EXPECT_EQ(Printed(a), "[[1 2]\n [3 4]]");
  EXPECT_EQ(Printed(b), "[[2 3]\n [4 5]]");
  EXPECT_EQ(Printed(a * b), "[[ 2  6]\n [12 20]]");
}

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

TEST_P(Rows, Z7_TapeOfASquare) {
  keel::Variable w({{1.0}});
  keel::Tape tape;
  Tensor loss = w * w;
  Tensor gradient = tape.gradient(loss, w);
  EXPECT_EQ(Printed(gradient, " ", gradient.type()), "[[2.]] f32[1, 1]");
}

TEST_P(Rows, Z9_StatefulAndStatelessOpsRunEagerly) {
  keel::Variable v({1, 2});
  v.assign_add({10, 10});
  EXPECT_EQ(Printed(v, " ", v + 1, " ", keel::add(2, 3)), "[11 12] [12 13] 5");
}

TEST_P(Rows, Z18_OneExcludesTheOtherIncludes) {
  keel::Variable w({{1.0}});
  keel::Tape tape({.persistent = true});
  Tensor hidden, seen = w * w;
  {
    auto none = keel::no_record();
    hidden = w * w;
  }
  {
    auto stopped = tape.stop_recording();
    hidden = hidden + w * w;
  }
  EXPECT_TRUE(tape.gradient(hidden, w).empty());
  EXPECT_EQ(Printed(tape.gradient(seen, w)), "[[2.]]");
}

TEST_P(Rows, K3_ThreePlusFive) {
  Tensor a = 3, b = 5;
  EXPECT_EQ(Printed(a, " ", b, " ", a + b), "3 5 8");
}

TEST_P(Rows, K10_EagerThenGraph) {
  auto step = [](const Tensor& x) { return keel::relu(x - 1); };
  Tensor x = {0., 3.};
  EXPECT_EQ(Printed(step(x)), "[0. 2.]");
  EXPECT_EQ(Printed(keel::function("step", step)(x)), "[0. 2.]");
}

}  // namespace
