// custom_test.cc: keel::custom_gradient, eagerly, in traced functions, in files; keel::jacobian. Oracles are
// literals worked out by hand, or central differences.
#include <cmath>

#include "devices.h"

namespace {

using keel::Tape;
using keel::Tensor;
using keel::Variable;
using sdk_test::Failure;
using sdk_test::Has;
using Tensors = std::vector<Tensor>;

class Customs : public sdk_test::OnEachDevice {};
KEEL_ON_EACH_DEVICE(Customs);

std::string Text(const Tensor& t) { return t.empty() ? "none" : to_string(t); }
Tensor IsNone(const Tensor& t) { return Tensor(t.empty()); }  // a graph cannot return an empty Tensor

// The program eagerly (twice, because calls may be cached), with run_eagerly, and as one graph.
template <class Program>
void All(const Program& program, const std::vector<std::string>& wanted, const Tensor& x) {
  auto check = [&](const Tensors& got, const char* how) {
    ASSERT_EQ(got.size(), wanted.size()) << how;
    for (size_t k = 0; k < got.size(); k++) EXPECT_EQ(Text(got[k]), wanted[k]) << how << ", result " << k;
  };
  check(program(x), "at first");
  check(program(x), "again");
  {
    keel::Eagerly now;
    check(program(x), "run eagerly");
  }
  check(keel::function("program", program)(x), "traced");
}

auto Doubled() {  // the gradient is twice the incoming one
  return keel::custom_gradient([](const Tensor& x) { return x * x * x; },
                               [](const Tensor&, const Tensor&, const Tensor& dy) { return dy * 2; },
                               "doubled");
}

TEST_P(Customs, TheGradientIsTheCallers) {
  auto f = Doubled();
  EXPECT_EQ(Text(f(Tensor{2.f, 3.f})), "[ 8. 27.]") << "without a tape";
  All(
      [&](const Tensor& x) {
        Tape tape;
        tape.watch(x);
        Tensor y = f(x);
        return Tensors{y, tape.gradient(y * Tensor{1.f, 10.f}, x)};
      },
      {"[ 8. 27.]", "[ 2. 20.]"}, Tensor{2.f, 3.f});
}

TEST_P(Customs, BackwardSeesArgumentsResultsAndCotangents) {
  auto f = keel::custom_gradient(
      [](const Tensor& a, const Tensor& b) { return std::pair(a * b, keel::exp(b * 0) + a); },
      [](const Tensor& a, const Tensor& b, const std::pair<Tensor, Tensor>& y,
         const std::pair<Tensor, Tensor>& dy) {
        return std::pair(y.first * dy.first + dy.second, a * 100 + b + y.second);
      });
  All(
      [&](const Tensor& x) {
        Tape tape;
        Tensor b = x + 1;  // 3
        tape.watch(x);
        tape.watch(b);
        auto [p, s] = f(x, b);  // 6, 3
        return tape.gradient(p * 10 + s * 7, {x, b});
      },
      {"[67.]", "[206.]"}, Tensor{2.f});
}

TEST_P(Customs, WhatForwardUsesBesideItsArgumentsGetsTheGradientOfItsOps) {
  Variable w({5.f});
  Tensor scale = {3.f};
  auto f =
      keel::custom_gradient([&](const Tensor& x) { return x * w * scale; },
                            [&](const Tensor&, const Tensor&, const Tensor& dy) { return dy * scale * w; });
  All(
      [&](const Tensor& x) {
        Tape tape;
        tape.watch(x);
        tape.watch(scale);
        Tensor y = f(x);
        Tensors d = tape.gradient(y, {x, w, scale});
        return Tensors{y, d[0], d[1], d[2]};
      },
      {"[30.]", "[15.]", "[6.]", "[10.]"}, Tensor{2.f});
}

TEST_P(Customs, GradientsOfGradientsAreThoseOfBackward) {
  auto f = keel::custom_gradient(
      [](const Tensor& x) { return keel::sin(x); },  // backward: y x^2 dy, deliberately not the derivative
      [](const Tensor& x, const Tensor& y, const Tensor& dy) { return y * x * x * dy; });
  double x = 0.7, y = std::sin(x), wanted = y * x * x * x * x + 2 * y * x;  // d(y x^2) = dy x^2 + 2 y x
  auto program = [&](const Tensor& at) {
    Tape outer;
    outer.watch(at);
    Tensor d;
    {
      Tape inner;
      inner.watch(at);
      d = inner.gradient(f(at), at);
    }
    return Tensors{d, outer.gradient(d, at)};
  };
  for (const Tensors& got : {program(keel::f64({x})), keel::function("p", program)(keel::f64({x}))}) {
    EXPECT_NEAR(got[0].item<double>(), y * x * x, 1e-12);
    EXPECT_NEAR(got[1].item<double>(), wanted, 1e-12);
  }
}

TEST_P(Customs, IntegersAndEmptyGradients) {
  auto f = keel::custom_gradient(
      [](const Tensor& x, const Tensor& n, const Tensor& z) {
        return Tensors{x * 2 + z, n + 1};
      },
      [](const Tensor&, const Tensor&, const Tensor&, const Tensors& y, const Tensors& dy) {
        EXPECT_EQ(y.size(), 2u);
        EXPECT_TRUE(dy[1].empty());
        return std::tuple(dy[0] * 5, Tensor(), Tensor());
      });
  All(
      [&](const Tensor& x) {
        Tape tape({.persistent = true});
        Tensor z = x * 1;
        tape.watch(x);
        tape.watch(z);
        Tensors y = f(x, Tensor{7}, z);
        return Tensors{y[1], tape.gradient(y[0], x), tape.gradient(y[0], z)};
      },
      {"[8]", "[5. 5.]", "[0. 0.]"}, Tensor{2.f, 3.f});
}

TEST_P(Customs, EmptyAndSize1) {
  auto f = Doubled();
  for (const Tensor& x : {keel::zeros({0, 3}), keel::zeros({1}), Tensor(1.f)}) {
    Tape tape;
    tape.watch(x);
    Tensor dx = tape.gradient(f(x), x);
    EXPECT_EQ(dx.type(), x.type());
    for (float v : dx.values<float>()) EXPECT_EQ(v, 2);
  }
}

TEST_P(Customs, AnySizes) {  // the third distinct one makes the size a symbol
  auto f = Doubled();
  auto g = keel::function("g", [&](const Tensor& x) {
    Tape tape;
    tape.watch(x);
    return tape.gradient(f(x) * x, x);  // 2 x + x^3
  });
  for (int64_t n : {2, 3, 4, 5}) {
    Tensor x(std::vector<float>(static_cast<size_t>(n), 2.f));
    Tape tape;
    tape.watch(x);
    Tensor d = g(x);
    EXPECT_EQ(d.values<float>(), std::vector<float>(static_cast<size_t>(n), 12)) << n;
    Tensor dd = tape.gradient(d, x);  // 2 + 2: in f x, the gradient of f's result is twice its cotangent
    EXPECT_EQ(dd.values<float>(), std::vector<float>(static_cast<size_t>(n), 4)) << n;
  }
  EXPECT_LE(g.trace_count(), 3);
}

TEST_P(Customs, SavedWithTheGraph) {
  auto f = Doubled();
  auto g = keel::function("g", [&](const Tensor& x) { return f(x) + x; });
  Tensor x = {1.f, 2.f};
  std::string path = testing::TempDir() + "custom_" + GetParam() + ".keel";
  keel::save(path, {{"g", g.concrete(x)}}, {.gradients = true});
  keel::Module module = keel::Module::load(keel::default_context(), path);
  keel::Options options;
  options.set("entry", "g.gradient");
  auto out = keel::Session(module, GetParam(), options).prepare().run(std::vector{x.array()});
  EXPECT_EQ(Text(Tensor(out[0])), "[ 2. 10.]");
  EXPECT_EQ(Text(Tensor(out[1])), "[3. 3.]");
  EXPECT_TRUE(Has(module.text(), "vjp=@")) << module.text();
  EXPECT_FALSE(Has(module.text(), "backward")) << "intermediate graphs are removed";
}

template <class Backward>
std::string FailureOf(Backward backward, const Tensor& x = Tensor{2.f, 3.f}) {
  auto f = keel::custom_gradient([](const Tensor& a) { return a * 2; }, backward, "bad");
  return Failure([&] {
    Tape tape;
    tape.watch(x);
    f(x);
  });
}

TEST_P(Customs, BadInput) {
  auto says = [](const std::string& text, const std::string& part) { EXPECT_TRUE(Has(text, part)) << text; };
  using T = const Tensor&;
  says(FailureOf([](T, T, T dy) { return std::pair(dy, dy); }), "backward returned 2 gradients, expected 1");
  says(FailureOf([](T, T, T dy) { return keel::reduce_sum(dy); }),
       "custom gradient \"bad\": the gradient of argument 0 is f32[], but the argument is f32[2]");
  says(FailureOf([](T, T, T dy) { return keel::cast(dy, KEEL_F64); }),
       "is f64[2], but the argument is f32[2]");
  EXPECT_THROW(FailureOf([](T, T, T) -> Tensor { throw std::out_of_range("mine"); }), std::out_of_range);
  Tensor leaked;
  says(FailureOf([&](T, T, T dy) { return leaked = dy * 2; }), "");
  says(Failure([&] { leaked + 1; }), "has ended");
  Tensor x = {1.f};
  auto f = Doubled();
  EXPECT_EQ(Text(f(x)), "[1.]") << "after failures";
}

TEST_P(Customs, BackwardUsesWhatIsAroundIt) {
  auto program = [](const Tensor& x) {
    Tensor k = x * 10;
    auto f =
        keel::custom_gradient([&](const Tensor& a) { return a * k; },
                              [&](const Tensor&, const Tensor&, const Tensor& dy) { return dy * k * k; });
    Tape tape;
    tape.watch(x);
    tape.watch(k);
    Tensor y = f(x);
    auto [dx, dk] = tape.gradient(y, std::pair(x, k));
    return Tensors{y, dx, dk};
  };
  All(program, {"[40.]", "[400.]", "[2.]"}, Tensor{2.f});
}

TEST_P(Customs, WhatBackwardReadsIsOfTheCall) {
  Variable w({5.f});
  auto f = keel::custom_gradient([](const Tensor& x) { return x * 1; },
                                 [&](const Tensor&, const Tensor&, const Tensor& dy) { return dy * w; });
  auto program = [&](const Tensor& x) {
    w.assign({5.f});
    Tape tape;
    tape.watch(x);
    Tensor y = f(x);
    w.assign({7.f});
    return Tensors{tape.gradient(y, x)};
  };
  All(program, {"[5.]"}, Tensor{2.f});
}

TEST_P(Customs, InBranchesAndLoops) {
  auto f = Doubled();
  auto program = [&](const Tensor& x) {
    auto y = keel::while_loop(
        std::tuple(Tensor(0), x), [](const Tensor& k, const Tensor&) { return k < 2; },
        [&](const Tensor& k, const Tensor& v) {
          return std::tuple(k + 1, keel::cond(
                                       keel::reduce_sum(v) > 0, [&] { return f(v); }, [&] { return v; }));
        });
    return std::get<1>(y);
  };
  auto taped = [&](const Tensor& x) {
    Tape tape;
    tape.watch(x);
    Tensor y = program(x);
    return Tensors{y, tape.gradient(y, x)};
  };
  All(taped, {"[512.]", "[4.]"}, Tensor{2.f});
  auto whole = keel::function("whole", program);
  Tape tape;
  Tensor x = {2.f};
  tape.watch(x);
  EXPECT_EQ(Text(tape.gradient(whole(x), x)), "[4.]") << "around a call";
}

// ---- Jacobians

TEST_P(Customs, JacobiansOfTapes) {
  Variable w({{1.f, 2.f}, {3.f, 4.f}});
  All(
      [&](const Tensor& x) {
        Tape tape;
        tape.watch(x);
        Tensor y = keel::reshape(keel::matmul(w, keel::reshape(x, {2, 1})), {2}) * x;
        auto [dx, dw] = tape.jacobian(y, std::pair(x, w));  // y0 = (x0 + 2 x1) x0, y1 = (3 x0 + 4 x1) x1
        return Tensors{dx, keel::reshape(dw, {2, 4})};
      },
      {"[[ 8.  2.]\n [ 9. 27.]]", "[[1. 3. 0. 0.]\n [0. 0. 3. 9.]]"}, Tensor{1.f, 3.f});
}

TEST_P(Customs, JacobiansOfFunctions) {
  auto square = [](const Tensor& x) { return x * x; };
  EXPECT_EQ(Text(keel::jacobian(square, Tensor{2.f, 3.f})), "[[4. 0.]\n [0. 6.]]");
  EXPECT_EQ(Text(keel::jacobian(keel::function("square", square), Tensor{2.f, 3.f})), "[[4. 0.]\n [0. 6.]]");
  auto constant = [](const Tensor& x) { return x - keel::stop_gradient(x) * 1 - x; };
  EXPECT_EQ(Text(keel::jacobian(
                [](const Tensor&) {
                  return Tensor{1.f, 2.f};
                },
                Tensor{7.f})),
            "[[0.]\n [0.]]");
  EXPECT_EQ(keel::jacobian(constant, keel::zeros({0})).type(), "f32[0, 0]");
  EXPECT_EQ(Text(keel::jacobian(square, Tensor(3.f))), "6.0");
  auto gradient = [&](const Tensor& x) {
    Tape tape;
    tape.watch(x);
    return tape.gradient(x * x * x, x);
  };
  EXPECT_EQ(Text(keel::jacobian(gradient, Tensor{2.f, 3.f})), "[[12.  0.]\n [ 0. 18.]]") << "a Hessian";
}

TEST_P(Customs, JacobiansAgainstFiniteDifferences) {
  auto f = [](const Tensor& x) { return keel::softmax(x * x) + keel::reduce_sum(keel::sin(x)); };
  std::vector<double> at = {0.3, -0.8, 1.1};
  std::vector<double> j = keel::jacobian(f, Tensor(at)).values<double>();
  for (size_t c = 0; c < 3; c++) {
    std::vector<double> side[2];
    for (int s : {0, 1}) {
      std::vector<double> moved = at;
      moved[c] += s ? 1e-5 : -1e-5;
      side[s] = f(Tensor(moved)).values<double>();
    }
    for (size_t r = 0; r < 3; r++) EXPECT_NEAR(j[3 * r + c], (side[1][r] - side[0][r]) / 2e-5, 1e-8);
  }
}

TEST_P(Customs, UnconnectedJacobiansAndOuterTapes) {
  Variable w({2.f}), other({9.f});
  All(
      [&](const Tensor& x) {
        Tape outer;
        outer.watch(x);
        Tensor d, none, zeros;
        {
          Tape tape({.persistent = true});
          tape.watch(x);
          Tensor y = x * x * w;
          d = keel::jacobian(tape, y, x);
          none = tape.jacobian(y, other);
          zeros = tape.jacobian(y, other, true);
        }
        return Tensors{d, IsNone(none), zeros, outer.gradient(d, x)};  // 2 w x on the diagonal
      },
      {"[[ 4.  0.]\n [ 0. 12.]]", "True", "[[0.]\n [0.]]", "[4. 4.]"}, Tensor{1.f, 3.f});
}

TEST_P(Customs, BadJacobians) {
  Variable w({2.f});
  Tape tape;
  Tensor y = w * w, count = {1};
  EXPECT_TRUE(Has(Failure([&] { tape.jacobian(y, Tensor()); }), "'xs[0]' is NULL"));
  EXPECT_TRUE(Has(Failure([&] { tape.jacobian(Tensor(), w); }), "'ys[0]' is NULL"));
  EXPECT_EQ(Text(tape.jacobian(y, w)), "[[4.]]");
  EXPECT_TRUE(Has(Failure([&] { tape.jacobian(y, w); }), "only be used to compute one set of gradients"));
  Tape again;
  again.watch(count);
  EXPECT_TRUE(Has(Failure([&] { again.jacobian(count * 2, count); }), "only floats have gradients"));
}

}  // namespace
