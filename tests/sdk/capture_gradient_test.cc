// capture_gradient_test.cc: gradients by arrays that only bodies of control flow capture, by numbers that
// equal literals, and the effect of a stopped tape in bodies. Oracles are finite differences of eager runs in
// f64, and literals worked out by hand.
#include <cmath>

#include "devices.h"

namespace {

using keel::Tape;
using keel::Tensor;
using sdk_test::Failure;
using sdk_test::Has;

class CaptureGradient : public sdk_test::OnEachDevice {};
KEEL_ON_EACH_DEVICE(CaptureGradient);

std::string Text(const Tensor& t) { return t.array() ? t.type() + " " + to_string(t) : "none"; }

// f64 programs of x and of a c that only bodies use, and their gradients by c in the three ways.
using Captures = Tensor (*)(const Tensor& x, const Tensor& c);
const std::pair<const char*, Captures> kCaptures[] = {
    {"cond",
     [](const Tensor& x, const Tensor& c) {
       return keel::cond(
           reduce_sum(x) > 0, [&] { return keel::sin(x * c); }, [&] { return x; });
     }},
    {"switch",
     [](const Tensor& x, const Tensor& c) {
       return keel::switch_(
           keel::Tensor(2), [&] { return x; }, [&] { return c * x; }, [&] { return x * c * c; });
     }},
    {"while",
     [](const Tensor& x, const Tensor& c) {  // the test reads it too
       return keel::while_loop(
           x, [&](const Tensor& v) { return reduce_sum(v * c) < 8; },
           [&](const Tensor& v) { return v * c + 1; });
     }},
    {"scan",
     [](const Tensor& x, const Tensor& c) {
       auto [last, all] = keel::scan(x, x, [&](const Tensor& s, const Tensor& v) {
         Tensor next = s * c + v;
         return std::pair(next, next * c);
       });
       return last + reduce_sum(all);
     }},
    {"nested", [](const Tensor& x, const Tensor& c) {
       return keel::while_loop(
           x, [](const Tensor& v) { return reduce_sum(v) < 30; },
           [&](const Tensor& v) {
             return keel::cond(
                 reduce_sum(v) > 6,
                 [&] {
                   return keel::scan(
                              v, v, [&](const Tensor& s, const Tensor& e) { return std::pair(s + c * e, e); })
                       .first;
                 },
                 [&] { return v * c + x; });
           });
     }}};

double Loss(const Tensor& y) { return reduce_sum(keel::sin(y)).item<double>(); }

// Gradient of loss(c) by each element of c.
template <class F>
std::vector<double> Differences(const F& loss, const std::vector<double>& c) {
  std::vector<double> out;
  for (size_t k = 0; k < c.size(); k++) {
    auto moved = [&](double by) {
      std::vector<double> at = c;
      at[k] += by;
      return loss(keel::f64(at));
    };
    constexpr double h = 1e-5;
    out.push_back((8 * (moved(h) - moved(-h)) - moved(2 * h) + moved(-2 * h)) / (12 * h));
  }
  return out;
}

void ExpectNear(const Tensor& got, const std::vector<double>& wanted, const std::string& what) {
  ASSERT_TRUE(got.array()) << what;
  auto values = got.values<double>();
  ASSERT_EQ(values.size(), wanted.size()) << what;
  for (size_t k = 0; k < wanted.size(); k++)
    EXPECT_NEAR(values[k], wanted[k], 1e-6 * std::max(1., std::abs(wanted[k]))) << what;
}

TEST_P(CaptureGradient, ArraysThatOnlyBodiesCaptureAgreeWithFiniteDifferences) {
  const std::vector<double> at = {1.3, 0.7};
  Tensor x = keel::f64({0.5, 1.25}), c = keel::f64(at);
  for (const auto& [name, program] : kCaptures) {
    auto first = [&](const Tensor& in, const Tensor& by) {
      Tape tape;
      tape.watch(by);
      Tensor loss = reduce_sum(keel::sin(program(in, by)));
      return tape.gradient(loss, by);
    };
    auto second = [&](const Tensor& in, const Tensor& by) {
      Tape tape;
      tape.watch(by);
      Tensor loss = reduce_sum(keel::sin(first(in, by)));
      return tape.gradient(loss, by);
    };
    std::vector<double> d = Differences([&](const Tensor& by) { return Loss(program(x, by)); }, at);
    std::vector<double> h = Differences([&](const Tensor& by) { return Loss(first(x, by)); }, at);
    std::string what = std::string(name) + ", ";
    ExpectNear(first(x, c), d, what + "eagerly");
    ExpectNear(second(x, c), h, what + "eagerly, second order");
    auto traced = [&](auto code) {
      return keel::function("f", [&c, code](const Tensor& in) { return code(in, c); });
    };
    ExpectNear(traced(first)(x), d, what + "in a traced function");
    ExpectNear(traced(second)(x), h, what + "in a traced function, second order");
    auto called = traced(program);
    called(x);  // traced before a tape watches
    Tape outer;
    outer.watch(c);
    Tensor inner = [&] {
      Tape tape;
      tape.watch(c);
      Tensor loss = reduce_sum(keel::sin(called(x)));
      return tape.gradient(loss, c);
    }();
    ExpectNear(inner, d, what + "around a call");
    ExpectNear(outer.gradient(reduce_sum(keel::sin(inner)), c), h, what + "around a call, second order");
  }
}

// Only computations on c in a body count for c: equal numbers are one constant of a graph, but not for
// gradients.
TEST_P(CaptureGradient, NumbersThatEqualLiterals) {
  Tensor c(2.f), other(2.f);
  auto program = [&](const Tensor& x) {
    return keel::cond(
               x > 0, [&] { return x * c + 2 * x; }, [&] { return x; }) +
           2 * x * other;
  };
  auto taped = [&](const Tensor& x) {
    Tape tape;
    tape.watch(c);
    Tensor y = program(x);
    return tape.gradient(y, c);
  };
  EXPECT_EQ(Text(taped(Tensor(3.f))), "f32[] 3.0");
  auto called = keel::function("f", program);
  called(Tensor(3.f));  // traced before a tape watches
  for (int turn = 0; turn < 2; turn++) {
    Tape tape;
    tape.watch(c);
    if (turn) tape.watch(other);
    Tensor y = called(Tensor(3.f));
    auto [dc, dother] = tape.gradient(y, std::tuple(c, other));
    EXPECT_EQ(Text(dc), "f32[] 3.0");
    EXPECT_EQ(Text(dother), turn ? "f32[] 6.0" : "none");
  }
  EXPECT_EQ(Text(keel::function("f", taped)(Tensor(3.f))), "f32[] 3.0");
  Tensor late(2.f);
  auto f = keel::function("f", [&](const Tensor& x) {
    Tensor y = x * late + 2 * x;
    Tape tape;
    tape.watch(late);
    Tensor z = y * late;
    return tape.gradient(z, late);
  });
  EXPECT_TRUE(Has(Failure([&] { f(Tensor(3.f)); }), "before a tape watched it"));
}

// While a function is traced, its graph also computes values that depend only on captured arrays.
TEST_P(CaptureGradient, OfWhatIsComputedOfThemAlone) {
  Tensor c(3.f);
  auto program = [&](const Tensor& x) {
    Tensor square = c * c;
    return square * x + keel::cond(
                            x > 0, [&] { return c * c * c * x; }, [&] { return x; });
  };
  auto taped = [&](const Tensor& x) {
    Tape tape;
    tape.watch(c);
    return tape.gradient(program(x), c);
  };
  const char* wanted = "f32[] 66.0";  // of (c^2 + c^3) x: (2 c + 3 c^2) x
  EXPECT_EQ(Text(taped(Tensor(2.f))), wanted);
  EXPECT_EQ(Text(keel::function("inside", taped)(Tensor(2.f))), wanted);
  auto called = keel::function("around", program);
  EXPECT_EQ(Text(called(Tensor(2.f))), "f32[] 72.0");  // traced before a tape watches
  for (int turn = 0; turn < 2; turn++) {
    Tape tape;
    tape.watch(c);
    EXPECT_EQ(Text(tape.gradient(called(Tensor(2.f)), c)), wanted);
  }
}

// In C, keel_apply on such arrays runs during the trace: no gradient can follow it, which is an error.
TEST_P(CaptureGradient, WhatIsComputedWhileTracingIsSaid) {
  Tensor c(3.f);
  auto f = keel::function("f", [&](const Tensor& x) {
    Tape tape;
    tape.watch(c);
    keel_array *in[] = {c.get(), c.get()}, *square = nullptr;
    keel_op* mul = keel::detail::here().op(keel::OpId::mul);
    keel::call(keel_trace_apply, nullptr, keel::detail::tape_handle(), mul, in, 2u, &square, 1u);
    return tape.gradient(Tensor(keel::Array(square)) * x, c);
  });
  EXPECT_TRUE(Has(Failure([&] { f(Tensor(1.f)); }), "was computed from a source while it was traced"));
}

// Values computed in a body while an outer tape is stopped pass no gradient to this tape.
Tensor StoppedFactor(const Tensor& x, Tape& tape) {
  return keel::cond(
      reduce_sum(x) > 0,
      [&] {
        Tensor square = [&] {
          auto stopped = tape.stop_recording();
          return x * x;
        }();
        return x * square;
      },
      [&] { return x; });
}
Tensor StoppedBranch(const Tensor& x, Tape& tape) {
  return keel::cond(
      reduce_sum(x) > 0,
      [&] {
        auto stopped = tape.stop_recording();
        return x * x;
      },
      [&] { return x; });
}
Tensor StoppedCond(const Tensor& k, const Tensor& v, Tape& tape) {
  auto stopped = tape.stop_recording();
  return keel::cond(
      k < 9, [&] { return v * v; }, [&] { return v; });
}
Tensor StoppedInWhile(const Tensor& x, Tape& tape) {  // v to v * (v^2 that is no v), twice: x^8
  return keel::cond(
      reduce_sum(x) > 0,
      [&] {
        return std::get<1>(keel::while_loop(
            std::tuple(Tensor(0), x), [](const Tensor& k, const Tensor&) { return k < 2; },
            [&](const Tensor& k, const Tensor& v) {
              return std::tuple(k + 1, v * StoppedCond(k, v, tape));
            }));
      },
      [&] { return x; });
}
Tensor StoppedInScan(const Tensor& x, Tape& tape) {
  auto step = [&](const Tensor& s, const Tensor& v) {
    auto stopped = tape.stop_recording();
    Tensor square = v * v;
    return std::pair(s + square, square);
  };
  return keel::scan(keel::zeros({}), x, step).first + x;
}

TEST_P(CaptureGradient, StoppedInBodies) {
  using Program = Tensor (*)(const Tensor&, Tape&);
  const std::tuple<const char*, Program, const char*> programs[] = {
      {"cond", StoppedFactor, "f32[2] [9. 4.]"},
      {"a whole branch", StoppedBranch, "f32[2] [0. 0.]"},
      {"while in cond", StoppedInWhile, "f32[2] [6561.  256.]"},
      {"scan", StoppedInScan, "f32[2] [1. 1.]"}};
  for (const auto& [name, program, wanted] : programs) {
    Tensor x = {3.f, 2.f};
    auto taped = [&, run = program](const Tensor& at) {
      Tape tape;
      tape.watch(at);
      Tensor y = run(at, tape);
      return tape.gradient(y, at, {.zeros = true});
    };
    EXPECT_EQ(Text(taped(x)), wanted) << name << ", eagerly";
    EXPECT_EQ(Text(keel::function("f", taped)(x)), wanted) << name << ", in a traced function";
    Tape tape;
    tape.watch(x);
    auto f = keel::function("f", [&, run = program](const Tensor& in) { return run(in, tape); });
    Tensor y = f(x);
    EXPECT_EQ(Text(tape.gradient(y, x, {.zeros = true})), wanted) << name << ", around a call";
  }
}

// A tape that starts in the body and is not stopped records ops that a stopped outer tape does not.
TEST_P(CaptureGradient, StoppedAroundATapeInABody) {
  auto program = [](const Tensor& x) {
    Tape outer;
    Tensor at = x * 2;
    outer.watch(x);
    Tensor y = keel::cond(
        reduce_sum(x) > 0,
        [&] {
          auto stopped = outer.stop_recording();
          Tape inner;
          Tensor here = at + 0;
          inner.watch(here);
          return inner.gradient(here * here * here, here);  // 3 (2 x)^2
        },
        [&] { return x; });
    return std::tuple(y, outer.gradient(y * x, x));
  };
  for (const auto& [y, dx] : {program(Tensor{1.f}), keel::function("f", program)(Tensor{1.f})}) {
    EXPECT_EQ(Text(y), "f32[1] [12.]");
    EXPECT_EQ(Text(dx), "f32[1] [12.]");
  }
}

}  // namespace
