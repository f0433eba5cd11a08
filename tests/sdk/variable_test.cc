// variable_test.cc: keel::Variable in programs: eagerly, in functions, created while tracing; a training
// step. Oracles are literals worked out by hand, and the same program run eagerly.
#include "devices.h"

namespace {

using keel::Tensor;
using keel::Variable;
using sdk_test::Failure;
using sdk_test::Has;

class VariablesInPrograms : public sdk_test::OnEachDevice {};
KEEL_ON_EACH_DEVICE(VariablesInPrograms);

std::string Text(const Tensor& t) { return t.type() + " " + to_string(t); }

TEST_P(VariablesInPrograms, EagerlyTheyAreTensorsThatChange) {
  Variable w({{1.f, 2.f}}, {.name = "w"}), i({1, 2}), same = w;
  Tensor before = w;
  w.assign_add(before * 10);
  same.assign_sub({{1, 0}});
  EXPECT_EQ(Text(before), "f32[1, 2] [[1. 2.]]");
  EXPECT_EQ(Text(w), "f32[1, 2] [[10. 22.]]");
  i.assign({7, 8});
  EXPECT_EQ(Text(i * 2), "i32[2] [14 16]");
  EXPECT_EQ(w.name() + i.name(), "w");
  EXPECT_TRUE(w.trainable());
  EXPECT_EQ(w.shape(), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(Text(keel::matmul(Tensor{{2.f}}, w)), "f32[1, 2] [[20. 44.]]");
  EXPECT_FALSE(Variable());
}

TEST_P(VariablesInPrograms, FunctionsAndEagerCodeShareThem) {
  Variable n(Tensor(0), {.name = "n"}), m(Tensor(100));
  int runs = 0;
  auto f = keel::function("f", [&](const Tensor& x) {
    runs++;
    Tensor before = n;
    n.assign_add(x);
    n.assign_add(1);
    m.assign(n * 2);
    return std::pair(before, n * 10);
  });
  auto [a, b] = f(Tensor(5));
  EXPECT_EQ(Text(a) + Text(b) + Text(n) + Text(m), "i32[] 0i32[] 60i32[] 6i32[] 12");
  n.assign(-1);
  auto [c, d] = f(Tensor(5));
  EXPECT_EQ(Text(c) + Text(d) + Text(n) + Text(m), "i32[] -1i32[] 50i32[] 5i32[] 10");
  EXPECT_EQ(runs, 1);
  keel::Module module = f.concrete(Tensor(5));
  for (const char* part :
       {"var n: i32[] = [5]", "var \"v1\": i32[] = [10]", "v0 = read(n)", "assign_add(n, x0)"})
    EXPECT_TRUE(Has(module.text(), part)) << module.text();
}

TEST_P(VariablesInPrograms, NamesAreOfTheModule) {
  Variable a(Tensor(1), {.name = "layer/w"}), b(Tensor(2), {.name = "layer/w"}), c(Tensor(3));
  auto f = keel::function("f", [&] { return a * 100 + b * 10 + c + a; });
  EXPECT_EQ(Text(f()), "i32[] 124");
  std::string text = f.concrete().text();
  for (const char* part : {"layer/w", "layer/w_1", "v2"}) EXPECT_TRUE(Has(text, part)) << text;
  keel::Module again = keel::Module::parse(keel::default_context(), text);
  EXPECT_EQ(again.text(), text);
}

TEST_P(VariablesInPrograms, MadeOnTheFirstTrace) {
  std::optional<Variable> w;
  int made = 0;
  auto f = keel::function("f", [&](const Tensor& x) {
    if (!w) made++, w.emplace(keel::iota({2}, {.dtype = KEEL_F32}) + 0.5);
    w->assign_add({1, 1});
    return *w * x;
  });
  EXPECT_EQ(Text(f(Tensor{1.f, 1.f})), "f32[2] [1.5 2.5]");
  EXPECT_EQ(Text(f(Tensor{1.f, 1.f})), "f32[2] [2.5 3.5]");
  EXPECT_EQ(Text(f(Tensor{1.f})), "f32[2] [3.5 4.5]");
  EXPECT_EQ(made, 1);
  EXPECT_EQ(f.trace_count(), 2);
}

TEST_P(VariablesInPrograms, LaterTracesMakeNone) {
  std::vector<Variable> all;
  auto f = keel::function("f", [&](const Tensor& x) {
    Variable made({1.f});
    all.push_back(made);
    return made * x;
  });
  f(Tensor{1.f});
  std::string failure = Failure([&] { f(Tensor{1.f, 2.f}); });
  EXPECT_TRUE(Has(failure, "function \"f\" creates a variable, but was traced before")) << failure;
  EXPECT_TRUE(Has(failure, "(variable_test.cc:")) << failure;
  EXPECT_EQ(all.size(), 1u);
  EXPECT_EQ(Text(f(Tensor{3.f})), "f32[1] [3.]") << "and all is as before";
}

TEST_P(VariablesInPrograms, TheFirstValueIsKnown) {
  auto f = keel::function("f", [](const Tensor& x) { return Variable(keel::exp(x * 2) + 1) * x; },
                          {.args = {"x"}});
  std::string failure = Failure([&] { f(Tensor{1.f}); });
  EXPECT_TRUE(Has(failure, "depends on parameter \"x\" of \"f\": x -> v0 -> v1 -> v2")) << failure;
  Variable w({1.f}, {.name = "w"});
  auto g = keel::function("g", [&](const Tensor& x) { return Variable(w * 2) * x; });
  failure = Failure([&] { g(Tensor{1.f}); });
  EXPECT_TRUE(Has(failure, "depends on an effect, read of \"g\": v0 -> v1")) << failure;
  EXPECT_TRUE(Has(Failure([&] { Variable{Tensor()}; }), "empty Tensor"));
}

TEST_P(VariablesInPrograms, ArgumentsCountByWhichTheyAre) {
  auto f = keel::function("f", [](const Variable& a, const Variable& b) {
    a.assign_add(b);
    return b * 1;
  });
  Variable a({1.f}), b({10.f});
  EXPECT_EQ(Text(f(a, b)), "f32[1] [10.]");
  EXPECT_EQ(Text(f(a, a)), "f32[1] [22.]");
  EXPECT_EQ(Text(f(a, b)), "f32[1] [10.]");
  EXPECT_EQ(Text(a), "f32[1] [32.]");
  EXPECT_EQ(f.trace_count(), 2);
}

TEST_P(VariablesInPrograms, BadWrites) {
  Variable w({1.f, 2.f}, {.name = "w"}), flag(Tensor(true));
  auto f = keel::function("f", [&](const Tensor& x) { w.assign(x); });
  std::string failure = Failure([&] { w.assign(Tensor{1.f}); });
  EXPECT_TRUE(Has(failure, "assign(f32[1]): the variable is f32[2], got f32[1]")) << failure;
  failure = Failure([&] { f(Tensor{1.f}); });
  EXPECT_TRUE(Has(failure, "assign(f32[1]): ") && Has(failure, "the variable has P = 2") &&
              Has(failure, "variable_test.cc:"))
      << failure;
  EXPECT_TRUE(Has(Failure([&] { flag.assign_add(true); }), "bool"));
  EXPECT_EQ(Text(w), "f32[2] [1. 2.]");
}

// A line through (1, 3) and (2, 5): all numbers are exact.
TEST_P(VariablesInPrograms, ATrainingStepByHand) {
  auto run = [](bool traced) {
    Variable w({0.f}), b({0.f});
    auto code = [&](const Tensor& x, const Tensor& t) {
      keel::Tape tape;
      Tensor d = x * w + b - t, loss = keel::reduce_mean(d * d);
      auto [dw, db] = tape.gradient(loss, std::tuple(w, b));
      w.assign_sub(dw * 0.125);
      b.assign_sub(db * 0.125);
      return loss;
    };
    auto step = keel::function("step", code);
    Tensor x = {1.f, 2.f}, t = {3.f, 5.f};
    std::string said;
    for (int k = 0; k < 2; k++) said += to_string(traced ? step(x, t) : code(x, t)) + " ";
    EXPECT_EQ(step.trace_count(), traced ? 1 : 0);
    return said + to_string(w) + to_string(b);
  };
  EXPECT_EQ(run(false), "17.0 0.3515625 [1.859375][1.140625]");
  EXPECT_EQ(run(true), "17.0 0.3515625 [1.859375][1.140625]");
}

// Two layers and momentum: the step as one graph gives the bits of the step run eagerly.
struct Net {
  Variable w1{keel::random(1, {6, 8}, {.dtype = KEEL_F32}) - 0.5}, b1{keel::zeros({8})},
      w2{keel::random(2, {8, 3}, {.dtype = KEEL_F32}) - 0.5}, b2{keel::zeros({3})};
  std::vector<Variable> all() const { return {w1, b1, w2, b2}; }
  std::vector<Variable> velocity;
  Tensor step(const Tensor& x, const Tensor& t) {
    keel::Tape tape;
    Tensor h = keel::tanh(keel::matmul(x, w1) + b1);
    Tensor loss = keel::reduce_mean(keel::cross_entropy(keel::matmul(h, w2) + b2, t));
    std::vector<Tensor> d = tape.gradient(loss, all());
    for (size_t k = 0; k < d.size(); k++) {
      if (velocity.size() <= k) velocity.emplace_back(keel::zeros(all()[k].shape()));
      velocity[k].assign(velocity[k] * 0.9 + d[k]);
      all()[k].assign_sub(velocity[k] * 0.1);
    }
    return loss;
  }
};

TEST_P(VariablesInPrograms, TheWholeStepAsOneGraph) {
  Net eager, graph;
  auto step = keel::function("step", [&](const Tensor& x, const Tensor& t) { return graph.step(x, t); });
  Tensor x = keel::random(3, {5, 6}, {.dtype = KEEL_F32}), t = {0, 2, 1, 1, 0};
  float first = 0, last = 0;
  for (int k = 0; k < 20; k++) {
    Tensor loss = eager.step(x, t);
    EXPECT_TRUE(same(loss, step(x, t))) << "step " << k;
    (k ? last : first) = loss.item<float>();
  }
  EXPECT_LT(last, first);
  for (size_t k = 0; k < 4; k++)
    EXPECT_TRUE(same(eager.all()[k], graph.all()[k])) << "variable " << k << " on " << GetParam();
  EXPECT_EQ(step.trace_count(), 1);
}

TEST_P(VariablesInPrograms, ASavedStepRunsWithoutItsSource) {
  Variable n(Tensor{1.f}, {.name = "n"});
  auto f = keel::function("f", [&](const Tensor& x) {
    n.assign_add(x);
    return n * 1;
  });
  keel::Module module = keel::Module::parse(keel::default_context(), f.concrete(Tensor{2.f}).text());
  keel::Plan plan = keel::Session(module, GetParam()).prepare();
  for (const char* wanted : {"[3.]", "[5.]"})
    EXPECT_EQ(to_string(Tensor(plan.run(std::vector{Tensor{2.f}.array()})[0])), wanted);
  EXPECT_EQ(to_string(n), "[1.]") << "a copy has state of its own";
}

}  // namespace
