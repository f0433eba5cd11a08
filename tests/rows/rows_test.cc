// rows_test.cc: the example programs in C++, named by their ids; see README.md. Those about functions are in
// rows_functions_test.cc.
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
