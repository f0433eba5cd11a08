// control_gradient_test.cc: gradients through cond, switch_, while_loop and scan: eagerly, by a tape in a
// traced function, by a tape around a call of a traced function. Oracles are literals worked out by hand.
#include "devices.h"

namespace {

using keel::Tape;
using keel::Tensor;
using keel::Variable;
using sdk_test::Failure;
using sdk_test::Has;

class ControlGradient : public sdk_test::OnEachDevice {};
KEEL_ON_EACH_DEVICE(ControlGradient);

std::string Text(const Tensor& t) { return t.array() ? t.type() + " " + to_string(t) : "none"; }

// d program(x) / dx in the three ways.
template <class Program>
void Gradient(const Program& program, const Tensor& x, const std::string& wanted) {
  auto taped = [&](const Tensor& at) {
    Tape tape;
    tape.watch(at);
    Tensor y = program(at);
    return tape.gradient(y, at);
  };
  EXPECT_EQ(Text(taped(x)), wanted) << "eagerly";
  EXPECT_EQ(Text(keel::function("f", taped)(x)), wanted) << "in a traced function";
  auto f = keel::function("f", program);
  Tape tape;
  tape.watch(x);
  Tensor y = f(x);
  EXPECT_EQ(Text(tape.gradient(y, x)), wanted) << "around a call";
}

TEST_P(ControlGradient, Branches) {
  auto program = [](const Tensor& x) {
    Tensor square = x * x;
    return keel::cond(
        keel::reduce_sum(x) > 0, [&] { return square * x; }, [&] { return x * 5; });
  };
  Gradient(program, {1.f, 2.f}, "f32[2] [ 3. 12.]");
  Gradient(program, {-1.f, -2.f}, "f32[2] [5. 5.]");
  auto chosen = [](const Tensor& x) {
    return keel::switch_(
        keel::cast(keel::reduce_sum(x), KEEL_I32), [&] { return x; }, [&] { return keel::exp(x * 0) * x; },
        [&] {
          return keel::cond(
              x[0] > 0, [&] { return x * x; }, [&] { return x; });
        });
  };
  Gradient(chosen, {0.f, 0.f}, "f32[2] [1. 1.]");
  Gradient(chosen, {0.5f, 0.5f}, "f32[2] [1. 1.]");
  Gradient(chosen, {1.5f, 0.5f}, "f32[2] [3. 1.]");
}

TEST_P(ControlGradient, Loops) {
  auto power = [](const Tensor& x) {  // x to the 4th, by a captured x
    return keel::while_loop(
        std::tuple(Tensor(1), x), [](const Tensor& k, const Tensor&) { return k < 4; },
        [&](const Tensor& k, const Tensor& p) { return std::tuple(k + 1, p * x); });
  };
  Gradient([&](const Tensor& x) { return std::get<1>(power(x)); }, {1.f, 2.f}, "f32[2] [ 4. 32.]");
  Gradient(
      [](const Tensor& x) {  // sums of squares so far: d = 2 x_i (n - i) ...
        return keel::scan(keel::zeros({}), x,
                          [](const Tensor& s, const Tensor& v) {
                            Tensor next = s + v * v;
                            return std::pair(next, next);
                          })
            .second;
      },
      {1.f, 2.f, 3.f}, "f32[3] [6. 8. 6.]");
  Gradient(
      [](const Tensor& x) {  // a branch in a loop: 2 * 2 * 2 * x below 8, then + x once each
        auto [k, y] = keel::while_loop(
            std::tuple(Tensor(0), x), [](const Tensor& i, const Tensor&) { return i < 5; },
            [&](const Tensor& i, const Tensor& v) {
              return std::tuple(i + 1,
                                keel::cond(
                                    keel::reduce_sum(v) < 8, [&] { return v * 2; }, [&] { return v + x; }));
            });
        return y;
      },
      {1.f}, "f32[1] [10.]");
}

TEST_P(ControlGradient, SecondOrder) {
  auto second = [](const Tensor& x) {
    Tape outer;
    outer.watch(x);
    Tensor first = [&] {
      Tape inner;
      inner.watch(x);
      Tensor y = keel::cond(
          x > 0, [&] { return x * x * x; }, [&] { return x * x; });
      return inner.gradient(y, x);
    }();
    return outer.gradient(first, x);
  };
  for (float at : {2.f, -2.f}) {
    std::string wanted = at > 0 ? "f32[] 12.0" : "f32[] 2.0";
    EXPECT_EQ(Text(second(Tensor(at))), wanted);
    EXPECT_EQ(Text(keel::function("f", second)(Tensor(at))), wanted);
  }
}

TEST_P(ControlGradient, VariablesThatBodiesRead) {
  Variable w({3.f}, {.name = "w"});
  auto program = [&](const Tensor& x) {
    return keel::while_loop(
        x, [&](const Tensor& y) { return keel::reduce_sum(y) < 20; },
        [&](const Tensor& y) {
          return keel::cond(
              keel::reduce_sum(y) > 0, [&] { return y * w; }, [&] { return y - w; });
        });
  };
  auto taped = [&](const Tensor& x) {
    Tape tape;
    Tensor y = program(x);
    return tape.gradient(y, w);
  };
  std::string wanted = "f32[1] [27.]";  // x w^3
  Tensor x = {1.f};
  EXPECT_EQ(Text(taped(x)), wanted);
  EXPECT_EQ(Text(keel::function("f", taped)(x)), wanted);
  auto f = keel::function("f", program);
  Tape tape;
  Tensor y = f(x);
  EXPECT_EQ(Text(tape.gradient(y, w)), wanted);
}

TEST_P(ControlGradient, FunctionsCalledInBodies) {
  auto square = keel::function("square", [](const Tensor& x) { return x * x; });
  Gradient(
      [&](const Tensor& x) {
        return keel::cond(
            x > 0, [&] { return square(square(x)); }, [&] { return square(x); });
      },
      Tensor(2.f), "f32[] 32.0");
  int traces = 0;
  auto halve = keel::function("halve", [&](const Tensor& x) {
    traces++;
    return keel::cond(
        x > 1, [&] { return x / 2; }, [&] { return x; });
  });
  auto f = keel::function("f", [&](const Tensor& x) {
    return keel::while_loop(
        x, [](const Tensor& y) { return y > 1; }, [&](const Tensor& y) { return halve(y); });
  });
  EXPECT_EQ(Text(f(Tensor(12.f))), "f32[] 0.75");
  EXPECT_EQ(Text(f(Tensor(3.f))), "f32[] 0.75");
  EXPECT_EQ(traces, 1) << "written into the loop once";
}

// Gradient descent in a loop of the graph: the tape is in the body.
TEST_P(ControlGradient, TapesInBodies) {
  auto train = [](const Tensor& steps) {
    auto [left, w] = keel::while_loop(
        std::tuple(steps, Tensor{8.f}), [](const Tensor& k, const Tensor&) { return k > 0; },
        [](const Tensor& k, const Tensor& v) {
          Tape tape;
          tape.watch(v);
          Tensor loss = keel::reduce_sum(v * v);
          return std::tuple(k - 1, v - 0.25 * tape.gradient(loss, v));
        });
    return w;
  };
  EXPECT_EQ(Text(train(Tensor(3))), "f32[1] [1.]");
  EXPECT_EQ(Text(keel::function("train", train)(Tensor(3))), "f32[1] [1.]");
  Variable w({8.f}, {.name = "w"});
  auto descend = [&](const Tensor& steps) {
    keel::while_loop(
        steps, [](const Tensor& k) { return k > 0; },
        [&](const Tensor& k) {
          Tape tape;
          Tensor loss = keel::reduce_sum(keel::square(w));
          w.assign_sub(0.25 * tape.gradient(loss, w));
          return k - 1;
        });
    return Tensor(w);
  };
  EXPECT_EQ(Text(descend(Tensor(3))), "f32[1] [1.]");
  EXPECT_EQ(Text(keel::function("descend", descend)(Tensor(3))), "f32[1] [0.125]");
}

// The gradient of an op with bodies, computed in a body.
TEST_P(ControlGradient, ATapeInABodyOverBranchesAndScans) {
  auto program = [](const Tensor& x) {
    auto [k, y] = keel::while_loop(
        std::tuple(Tensor(0), x), [](const Tensor& k, const Tensor&) { return k < 2; },
        [](const Tensor& k, const Tensor& v) {
          Tape tape;
          tape.watch(v);
          Tensor y = keel::cond(
              keel::reduce_sum(v) > 0, [&] { return v * v; }, [&] { return v * 3; });
          return std::tuple(k + 1, tape.gradient(y, v));
        });
    return y;
  };
  for (const auto& [x, wanted] :
       {std::pair(Tensor{1.f}, "f32[1] [4.]"), std::pair(Tensor{-1.f}, "f32[1] [6.]")}) {
    EXPECT_EQ(Text(program(x)), wanted);
    EXPECT_EQ(Text(keel::function("f", program)(x)), wanted);
  }
}

// Gradients within a body create their own graphs, and may contain others.
TEST_P(ControlGradient, GradientsWithinBodiesThroughOtherBodies) {
  auto tripled = keel::custom_gradient([](const Tensor& x) { return x * x; },
                                       [](const Tensor&, const Tensor&, const Tensor& dy) { return dy * 3; });
  auto program = [&](const Tensor& x) {
    return keel::cond(
        keel::reduce_sum(x) > 0,
        [&] {
          Tensor at = x * 1;
          Tape tape;
          tape.watch(at);
          Tensor y = keel::cond(
              keel::reduce_sum(at) > 4, [&] { return at * at * at; }, [&] { return tripled(at); });
          Tensor z = keel::scan(keel::zeros({}), at, [](const Tensor& s, const Tensor& v) {
                       return std::pair(s + v * v, s);
                     }).first;
          return tape.gradient(y, at, {.zeros = true}) + 0 * z;
        },
        [&] { return x; });
  };
  auto f = keel::function("f", program);
  for (auto [x, wanted] : {std::pair(3.f, "f32[2] [27. 12.]"), std::pair(1.f, "f32[2] [3. 3.]"),
                           std::pair(-9.f, "f32[2] [-9.  2.]")}) {
    Tensor in = {x, 2.f};
    EXPECT_EQ(Text(program(in)), wanted) << "eagerly";
    EXPECT_EQ(Text(f(in)), wanted) << "traced";
  }
}

// As required by the error message below. x (w + 1) (w + 2).
TEST_P(ControlGradient, VariablesThatALoopCarries) {
  Variable w({2.f}, {.name = "w"});
  auto program = [&](const Tensor& x) {
    auto [y, last] = keel::while_loop(
        std::tuple(x, Tensor(w)), [](const Tensor& y, const Tensor&) { return keel::reduce_sum(y) < 9; },
        [](const Tensor& y, const Tensor& v) { return std::tuple(y * (v + 1), v + 1); });
    w.assign(last);
    return y;
  };
  auto called = keel::function("f", program);
  Tape tape;
  Tensor y = called(Tensor{1.f});
  EXPECT_EQ(Text(y), "f32[1] [12.]");
  EXPECT_EQ(Text(tape.gradient(y, w)), "f32[1] [7.]");
  EXPECT_EQ(Text(Tensor(w)), "f32[1] [4.]");
}

TEST_P(ControlGradient, WhatGradientsDoNotFindIsSaid) {
  Variable w({2.f}, {.name = "w"});
  auto written = [&](const Tensor& x) {
    return keel::while_loop(
        x, [](const Tensor& y) { return keel::reduce_sum(y) < 9; },
        [&](const Tensor& y) {
          w.assign_add({1.f});
          return y * w;
        });
  };
  auto traced = keel::function("f", [&](const Tensor& x) {
    Tape tape;
    Tensor y = written(x);
    return tape.gradient(y, w);
  });
  std::string read = "gradient: variable \"w\" was read in a body that also writes it";
  EXPECT_TRUE(Has(Failure([&] { traced(Tensor{1.f}); }), read));
  auto called = keel::function("f", written);
  Tape outside;
  Tensor product = called(Tensor{1.f});
  std::string hint;
  try {
    outside.gradient(product, w);
  } catch (const keel::Error& e) {
    EXPECT_TRUE(Has(e.what(), read));
    hint = e.hint();
  }
  EXPECT_EQ(hint, "carry its value as an argument and assign the result after the loop or branch");

  auto inside = keel::function("f", [&](const Tensor& x) {
    Tape tape;
    tape.watch(x);
    Tensor u = x * 2;
    return keel::cond(
        x > 0, [&] { return tape.gradient(u * x, x); }, [&] { return x; });
  });
  EXPECT_TRUE(Has(Failure([&] { inside(Tensor(1.f)); }), "which was watched before the body began"));
  Tensor c = {3.f};
  auto captured = keel::function("f", [&](const Tensor& x) {
    Tape tape;
    tape.watch(c);
    auto scaled = [&] {
      return keel::cond(
          reduce_sum(x) > 0, [&] { return x * c; }, [&] { return x; });
    };
    Tensor u = scaled();
    return keel::cond(
        reduce_sum(x) > 0, [&] { return tape.gradient(u * c, c); }, scaled);
  });
  EXPECT_TRUE(Has(Failure([&] { captured(Tensor{1.f}); }), "which was watched before the body began"));
}

// Constants of a body can be watched there as elsewhere.
TEST_P(ControlGradient, ArraysThatABodyCaptures) {
  Tensor c = {3.f};
  auto program = [&](const Tensor& x) {
    return keel::cond(
        keel::reduce_sum(x) > 0,
        [&] {
          Tape tape;
          tape.watch(c);
          Tensor y = x * c * c;
          return tape.gradient(y, c);
        },
        [&] { return x; });
  };
  EXPECT_EQ(Text(program(Tensor{2.f})), "f32[1] [12.]");
  EXPECT_EQ(Text(keel::function("f", program)(Tensor{2.f})), "f32[1] [12.]");
}

}  // namespace
