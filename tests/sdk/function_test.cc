// function_test.cc: C++ code as keel::function: one trace per signature, structures in and out, exceptions,
// modules, eager runs. Oracles are literals and the same code run eagerly.
#include <thread>

#include "devices.h"

namespace {

using keel::Tensor;
using sdk_test::Failure;
using sdk_test::Has;

class Functions : public sdk_test::OnEachDevice {};
KEEL_ON_EACH_DEVICE(Functions);

std::string Text(const Tensor& t) { return t.type() + " " + to_string(t); }

TEST_P(Functions, TraceOncePerSignature) {
  int runs = 0;
  auto f = keel::function("f", [&](const Tensor& a, const Tensor& b) {
    runs++;
    return a * b + 1;
  });
  EXPECT_EQ(Text(f(Tensor{1, 2}, Tensor{3, 4})), "i32[2] [4 9]");
  EXPECT_EQ(Text(f(Tensor{5, 6}, Tensor{1, 1})), "i32[2] [6 7]");
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(Text(f(Tensor{1.f}, Tensor{3.f})), "f32[1] [4.]");
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(f.trace_count(), 2);
  EXPECT_TRUE(Has(f.report(), "argument 0 was i32[2], now f32[1]")) << f.report();
}

TEST_P(Functions, StaticValuesCountByTypeAndValue) {
  auto f = keel::function("f", [](const Tensor& x, auto k) { return x * k; });
  Tensor x = {3.f};
  EXPECT_EQ(Text(f(x, 2)), "f32[1] [6.]");
  EXPECT_EQ(Text(f(x, 2.5)), "f32[1] [7.5]");
  EXPECT_EQ(Text(f(x, 2.5f)), "f32[1] [7.5]");
  EXPECT_EQ(Text(f(x, int64_t{2})), "f32[1] [6.]");
  EXPECT_EQ(f.trace_count(), 4);
  f(x, 2);
  f(x, 2.5);
  EXPECT_EQ(f.trace_count(), 4);
  enum class Mode { kUp, kDown };
  auto g = keel::function(
      "g", [](const Tensor& y, Mode mode, const std::string& name, bool twice, std::optional<int> add) {
        Tensor z = mode == Mode::kUp ? y + 1 : y - 1;
        if (name == "neg") z = -z;
        if (add) z += *add;
        return twice ? z * 2 : z;
      });
  EXPECT_EQ(Text(g(x, Mode::kUp, "neg", false, std::optional<int>())), "f32[1] [-4.]");
  EXPECT_EQ(Text(g(x, Mode::kDown, "neg", true, std::optional<int>(10))), "f32[1] [16.]");
  EXPECT_EQ(g.trace_count(), 2);
}

struct Layer {
  Tensor w, b;
  float rate = 1;
};
struct Grown {
  Tensor sum;
  std::vector<Tensor> all;
};

TEST_P(Functions, StructuresInAndOut) {
  auto f = keel::function(
      "net",
      [](const std::map<std::string, Layer>& layers, const std::vector<Tensor>& xs, std::pair<int, bool> p) {
        Grown out{xs[0], {}};
        for (const auto& [name, layer] : layers)
          out.all.push_back(out.sum = keel::matmul(out.sum, layer.w) * layer.rate + layer.b);
        if (p.second) out.sum = out.sum * p.first;
        return std::pair(out, xs.back());
      },
      {.args = {"p", "xs", "how"}});
  std::map<std::string, Layer> layers{{"a", {{{1.f, 0.f}, {0.f, 1.f}}, {1.f, 2.f}, 10.f}},
                                      {"b", {{{1.f, 1.f}, {1.f, 1.f}}, {0.f, 0.f}}}};
  Tensor x = {{1.f, 2.f}}, y = {7};
  auto [grown, last] = f(layers, std::vector{x, y}, std::pair(2, true));
  EXPECT_EQ(Text(grown.sum), "f32[1, 2] [[66. 66.]]");
  ASSERT_EQ(grown.all.size(), 2u);
  EXPECT_EQ(Text(grown.all[0]), "f32[1, 2] [[11. 22.]]");
  EXPECT_EQ(Text(last), "i32[1] [7]");
  layers["a"].rate = 1;  // a static value
  EXPECT_EQ(Text(f(layers, std::vector{x, y}, std::pair(2, true)).first.sum), "f32[1, 2] [[12. 12.]]");
  EXPECT_EQ(f.trace_count(), 2);
  EXPECT_TRUE(Has(f.report(), "argument p.a.2 was f64 10.0, now f64 1.0")) << f.report();
  EXPECT_TRUE(Has(f.report(), "(p.a.0: f32[2, 2], p.a.1: f32[2], ")) << f.report();
}

TEST_P(Functions, ResultsOfEveryForm) {
  Tensor x = {1, 2};
  auto array = keel::function("array", [](const Tensor& t) { return std::array<Tensor, 2>{t, t + 1}; });
  EXPECT_EQ(Text(array(x)[1]), "i32[2] [2 3]");
  auto list = keel::function("list", [](const Tensor& t, int n) { return std::vector<Tensor>(n, t); });
  EXPECT_EQ(list(x, 3).size(), 3u);
  EXPECT_EQ(list(x, 0).size(), 0u);
  auto number = keel::function("number", [](const Tensor&) { return 5.5; });
  EXPECT_EQ(Text(number(x)), "f32[] 5.5");
  int runs = 0;
  auto nothing = keel::function("nothing", [&](const Tensor&) { runs++; });
  nothing(x);
  nothing(x);
  EXPECT_EQ(runs, 1);
  auto empty = keel::function("empty", [](const Tensor&) { return Tensor(); });
  EXPECT_TRUE(Has(Failure([&] { empty(x); }), "empty Tensor"));
}

TEST_P(Functions, EagerAndTracedGiveTheSameBits) {
  auto code = [](const Tensor& x, const Tensor& w) {
    Tensor h = keel::tanh(keel::matmul(x, w) * 0.3);
    return keel::softmax(h - keel::reduce_mean(h, {.axes = {1}, .keep = true}));
  };
  auto f = keel::function("f", code, {.more = {{"level", "2"}}});
  Tensor x = keel::random(1, {5, 7}), w = keel::random(2, {7, 3});
  EXPECT_TRUE(same(code(x, w), f(x, w)));
}

TEST_P(Functions, WhatTheCodeThrowsComesOut) {
  struct Mine {
    int number;
  };
  auto inner = keel::function("inner", [](const Tensor& x) -> Tensor {
    if (x.ndim() == 1) throw Mine{42};
    return x;
  });
  auto outer = keel::function("outer", [&](const Tensor& x) { return inner(x) + 1; });
  Tensor x = {1};
  try {
    outer(x);
    FAIL();
  } catch (const Mine& mine) {
    EXPECT_EQ(mine.number, 42);
  }
  EXPECT_EQ(Text(outer(Tensor(1))), "i32[] 2");  // and the state is unchanged
  auto wrong = keel::function("wrong", [](const Tensor& t) { return t + Tensor{1, 2, 3}; });
  EXPECT_TRUE(Has(Failure([&] { wrong(Tensor{1, 2}); }), "add(i32[2], i32[3]): "));
  EXPECT_TRUE(Has(Failure([&] { wrong(Tensor{1, 2}); }), "(function_test.cc:"));
}

TEST_P(Functions, ModulesOfTheirOwn) {
  auto f = keel::function("scaled", [](const Tensor& x, int k) { return x * k; },
                          {.args = {"x"}, .results = {"y"}});
  keel::Module module = f.concrete(Tensor{1.f, 2.f}, 3);
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_EQ(module.text(),
            "keel 1\nmeta \"signature/scaled\" = \"scaled(x, x1=3)\"\n\nfn @scaled(x: f32[2]) -> y: f32[2] "
            "{\n  v0 = mul(x, 3.0) : f32[2]\n  return v0\n}\n\n"
            "entry scaled = @scaled (x) -> (y)\n");
  keel::Plan plan = keel::Session(module, GetParam()).prepare();
  EXPECT_EQ(to_string(Tensor(plan.run(std::vector{Tensor{5.f, 6.f}.array()})[0])), "[15. 18.]");
}

TEST_P(Functions, RunEagerly) {
  bool symbolic = true;
  int runs = 0;
  auto f = keel::function("f", [&](const Tensor& x) {
    EXPECT_EQ(x.symbolic(), symbolic);
    runs++;
    return x + 1;
  });
  Tensor x = {1};
  auto call = [&](int wanted_runs) {
    EXPECT_EQ(Text(f(x)), "i32[1] [2]");
    EXPECT_EQ(runs, wanted_runs);
  };
  call(1);
  symbolic = false;
  f.run_eagerly();
  call(2);
  call(3);
  f.run_eagerly(false);
  call(3);
  keel::run_eagerly();
  call(4);
  keel::run_eagerly(false);
  call(4);
  keel::run_eagerly(keel::default_context());
  call(5);
  keel::run_eagerly(keel::default_context(), false);
  {
    keel::Eagerly now;
    call(6);
  }
  call(6);
}

TEST_P(Functions, OptionsOfTheSignature) {
  auto any = keel::function("any", [](const Tensor& x) { return x * 2; }, {.signature = "x: f32[n]"});
  for (int64_t n : {0, 1, 5}) EXPECT_EQ(any(keel::zeros({n})).size(), n);
  EXPECT_EQ(any.trace_count(), 1);
  auto rules = keel::function("rules", [](const Tensor& x) { return x * 2; },
                              {.signature = "x: f32[n] where n in 2..64, n % 8 == 0"});
  for (int64_t n : {8, 64}) EXPECT_EQ(rules(keel::zeros({n})).size(), n);
  EXPECT_TRUE(
      Has(Failure([&] { rules(keel::zeros({12})); }),
          "\"n % 8 == 0\" does not hold of \"x\", which is f32[n]: with these sizes 4 is not equal to 0"));
  EXPECT_TRUE(Has(Failure([&] { rules(keel::zeros({72})); }), "\"n in 2..64\" does not hold of \"x\""));
  EXPECT_TRUE(Has(Failure([] {
                    keel::function("bad", [](const Tensor& x) { return x; },
                                   {.signature = "x: f32[n] where m == 1"});
                  }),
                  "no size is named m"));
  EXPECT_TRUE(Has(Failure([&] { any(Tensor{1}); }), "f32[n]")) << Failure([&] { any(Tensor{1}); });
  auto never = keel::function("never", [](const Tensor& x) { return x; }, {.any_after = "never"});
  for (int64_t n = 2; n < 7; n++) never(keel::zeros({n}));
  EXPECT_EQ(never.trace_count(), 5);
  auto few = keel::function("few", [](const Tensor& x) { return x; },
                            {.any_after = "never", .more = {{"max_traces", "2"}}});
  for (int64_t n = 2; n < 7; n++) few(keel::zeros({n}));
  EXPECT_EQ(few.trace_count(), 5);
  EXPECT_TRUE(Has(few.trace(0).text(), "f32[5]") && Has(few.trace(1).text(), "f32[6]"));
  EXPECT_EQ(Failure([&] { few.trace(2); }), "function \"few\" has no trace 2; it has 2, counted from 0");
  EXPECT_TRUE(Has(
      Failure([] { keel::function("bad", [](const Tensor& x) { return x; }, {.signature = "x: f33[n]"}); }),
      "f33"));
}

TEST_P(Functions, ConstantsOfTheCodeBecomeTheGraphs) {
  Tensor captured = {10, 20};
  auto f = keel::function(
      "f", [&](const Tensor& x) { return x + captured + keel::iota({2}, {.dtype = KEEL_I32}); });
  EXPECT_EQ(Text(f(Tensor{1, 2})), "i32[2] [11 23]");
  captured = Tensor{0, 0};  // the trace keeps the traced value
  EXPECT_EQ(Text(f(Tensor{1, 2})), "i32[2] [11 23]");
}

TEST_P(Functions, ChangesOfWhatTheCodeCapturesAreToldIfAsked) {
  float rate = 0.5;
  Tensor captured = {10.f, 20.f}, large = keel::zeros({100, 2});
  keel::Variable variable(Tensor{1.f, 1.f});
  auto f = keel::function(
      "f", [&](const Tensor& x) { return keel::reduce_sum(large * x, {0}) + x * rate + captured + variable; },
      {.check_captures = true});
  auto failure = [&] { return Failure([&] { f(Tensor{2.f, 4.f}); }); };
  EXPECT_EQ(Text(f(Tensor{2.f, 4.f})), "f32[2] [12. 23.]");
  variable.assign(Tensor{2.f, 3.f});  // no capture: shared
  EXPECT_EQ(Text(f(Tensor{2.f, 4.f})), "f32[2] [13. 25.]");
  rate = 2;
  EXPECT_TRUE(Has(failure(), "mul(x0, 2.0)")) << failure();
  rate = 0.5;
  EXPECT_EQ(failure(), "");
  captured = Tensor{10.f, 21.f};
  EXPECT_TRUE(Has(failure(), "[10.0, 21.0]")) << failure();
  captured = Tensor{10.f, 20.f};
  large = keel::zeros({100, 2}) + 1;
  EXPECT_TRUE(Has(failure(), "other elements")) << failure();
  large = keel::zeros({100, 2});
  EXPECT_EQ(failure(), "");
}

TEST_P(Functions, LeaksAndRecursionAreNamed) {
  Tensor leaked;
  auto f = keel::function("leaky", [&](const Tensor& x) { return leaked = x * 2; });
  f(Tensor{1});
  EXPECT_TRUE(Has(Failure([&] { leaked + 1; }), "the trace of \"leaky\" has ended"));
  std::function<Tensor(const Tensor&)> again;
  auto g = keel::function("g", [&](const Tensor& x) { return again(x); });
  Tensor seed = {1};
  again = [&](const Tensor&) { return g(seed); };
  EXPECT_TRUE(Has(Failure([&] { g(seed); }), "function \"g\" calls itself"));
}

TEST_P(Functions, FailedRunsNameTheLineThatWroteTheNode) {
  unsigned line = 0;
  auto f = keel::function("f", [&](const Tensor& x, const Tensor& i) {
    Tensor twice = x * 2;
    line = __LINE__ + 1;
    Tensor y = keel::gather(twice, i);
    return y + 1;
  });
  Tensor x = {1.f, 2.f}, i = {7};
  std::string said = Failure([&] { f(x, i).values<float>(); }),
              place = "function_test.cc:" + std::to_string(line) + ")";
  EXPECT_TRUE(Has(said, "index 7 is not in [0, 2)")) << said;
  EXPECT_TRUE(Has(said, place)) << said;
  std::string path = testing::TempDir() + "line_" + GetParam() + ".keel";
  f.concrete(x, i).save(path);
  keel::Module loaded = keel::Module::load(keel::default_context(), path);
  keel::Plan plan = keel::Session(loaded, GetParam()).prepare();
  said = Failure([&] { plan.run(std::vector{x.array(), i.array()}); });
  EXPECT_TRUE(Has(said, place)) << said;
}

TEST_P(Functions, ThreadsShareOne) {
  auto f = keel::function("f", [](const Tensor& x, int k) { return x * k; });
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; t++)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; i++) ASSERT_EQ(f(Tensor(i), t % 3).item<int>(), i * (t % 3));
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(f.trace_count(), 3);
}

}  // namespace
