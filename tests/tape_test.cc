// tape_test.cc: tapes (keel.h): gradients of eager computations. Oracles are literals worked out by hand, or
// the named example of tests/rows.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "sdk/cpp/keel/keel.hpp"
#include "tests/devices.h"
#include "tests/failure.h"

namespace {

using keel::Array;
using keel_test::Failure;
using Arrays = std::vector<Array>;
using Floats = std::vector<float>;

class Tapes : public testing::TestWithParam<std::string> {
 protected:
  struct Tape {
    keel::Handle<keel_tape, keel_tape_free> handle;
    explicit Tape(const Tapes& test, const keel::Options& options = {}, keel_tape* outer = nullptr) {
      keel_tape* out = nullptr;
      std::vector<keel_kv> kv = options.view();
      keel::call(keel_tape_new, test.context_.get(), GetParam().c_str(), kv.data(),
                 static_cast<uint32_t>(kv.size()), outer, &out);
      handle.reset(out);
    }
    void watch(const Array& a) { keel::call(keel_tape_watch, handle.get(), a.get(), nullptr); }
    Array apply(const keel::Op& op, const Arrays& in) {
      std::vector<keel_array*> ins = keel::raw(in);
      keel_array* out = nullptr;
      keel::call(keel_trace_apply, nullptr, handle.get(), op.get(), ins.data(),
                 static_cast<uint32_t>(ins.size()), &out, 1u);
      return Array(out);
    }
    Arrays gradient(const Arrays& ys, const Arrays& xs, const Arrays& seeds = {}, uint32_t flags = 0) {
      std::vector<keel_array*> y = keel::raw(ys), x = keel::raw(xs), s = keel::raw(seeds), out(xs.size());
      keel::call(keel_tape_gradient, handle.get(), y.data(), static_cast<uint32_t>(y.size()),
                 s.empty() ? nullptr : s.data(), x.data(), nullptr, static_cast<uint32_t>(x.size()), flags,
                 out.data());
      return keel::take_arrays(out);
    }
  };
  Array Vector(const Floats& v) const {
    const int64_t shape[] = {static_cast<int64_t>(v.size())};
    return Array::of<float>(context_, shape, v);
  }
  static Floats Values(const Array& a) {
    auto all = a.values<float>();
    return {all.begin(), all.end()};
  }
  keel::Context context_ = keel_test::Open(GetParam());
  keel::Op add_{context_, GetParam(), "add"}, mul_{context_, GetParam(), "mul"},
      exp_{context_, GetParam(), "exp"}, relu_{context_, GetParam(), "relu"},
      neg_{context_, GetParam(), "neg"};
};

TEST_P(Tapes, SquareOfAVariable) {  // Z7: loss = w * w; tape.gradient(loss, w) is [[2.]]
  const int64_t shape[] = {1, 1};
  Array w = Array::of<float>(context_, shape, Floats{1});
  Tape tape(*this);
  tape.watch(w);
  Array loss = tape.apply(mul_, {w, w});
  Array dw = tape.gradient({loss}, {w})[0];
  EXPECT_EQ(Values(dw), Floats{2});
  EXPECT_EQ(dw.shape().size(), 2u);
}

TEST_P(Tapes, SeveralSourcesTargetsAndSeeds) {
  Array a = Vector({1, 2}), b = Vector({3, 4});
  Tape tape(*this, {{"persistent", "1"}});
  tape.watch(a);
  tape.watch(b);
  Array product = tape.apply(mul_, {a, b}), sum = tape.apply(add_, {product, a});
  Arrays d = tape.gradient({product, sum}, {a, b, product});
  EXPECT_EQ(Values(d[0]), (Floats{7, 9}));  // 2 b + 1
  EXPECT_EQ(Values(d[1]), (Floats{2, 4}));  // 2 a
  EXPECT_EQ(Values(d[2]), (Floats{2, 2}));
  d = tape.gradient({sum}, {b}, {Vector({10, -1})});
  EXPECT_EQ(Values(d[0]), (Floats{10, -2}));
}

TEST_P(Tapes, OnlyWatchedArraysCount) {
  Array a = Vector({2}), b = Vector({5}), c = Vector({7});
  Tape tape(*this, {{"persistent", "1"}});
  tape.watch(a);
  Array y = tape.apply(mul_, {a, b});
  tape.apply(mul_, {b, b});
  Arrays d = tape.gradient({y}, {a, b, c});
  EXPECT_EQ(Values(d[0]), Floats{5});
  EXPECT_FALSE(d[1]);
  EXPECT_FALSE(d[2]);
  d = tape.gradient({y}, {c}, {}, KEEL_GRADIENT_ZEROS);
  ASSERT_TRUE(d[0]);
  EXPECT_EQ(Values(d[0]), Floats{0});
}

TEST_P(Tapes, OnceUnlessPersistent) {
  Array a = Vector({3});
  Tape tape(*this);
  tape.watch(a);
  Array y = tape.apply(mul_, {a, a});
  EXPECT_EQ(Values(tape.gradient({y}, {a})[0]), Floats{6});
  EXPECT_EQ(Failure([&] { tape.gradient({y}, {a}); }),
            "A non-persistent tape can only be used to compute one set of gradients (or jacobians)");
  keel_tape_reset(tape.handle.get());
  tape.watch(a);
  y = tape.apply(exp_, {a});
  EXPECT_FLOAT_EQ(Values(tape.gradient({y}, {a})[0])[0], std::exp(3.f));
}

TEST_P(Tapes, PausedTapesRecordNothing) {  // Z18
  Array a = Vector({3});
  Tape tape(*this);
  tape.watch(a);
  keel_tape_pause(tape.handle.get(), 1);
  Array hidden = tape.apply(mul_, {a, a});
  keel_tape_pause(tape.handle.get(), 0);
  Array y = tape.apply(mul_, {a, hidden});
  EXPECT_EQ(Values(tape.gradient({y}, {a})[0]), Floats{9});
}

TEST_P(Tapes, GradientsOfGradients) {  // x^3 at 2: 12, then 12
  Array x = Vector({2});
  Tape outer(*this), inner(*this, {}, outer.handle.get());
  outer.watch(x);
  inner.watch(x);
  Array square = inner.apply(mul_, {x, x}), cube = inner.apply(mul_, {square, x});
  Array dx = inner.gradient({cube}, {x})[0];
  EXPECT_EQ(Values(dx), Floats{12});
  EXPECT_EQ(Values(outer.gradient({dx}, {x})[0]), Floats{12});
}

TEST_P(Tapes, AnAppendedArrayIsNotTakenForOneThatDied) {
  Tape tape(*this);
  Array a = Vector({3});
  tape.watch(a);
  for (int i = 0; i < 100; i++) tape.apply(neg_, {a});  // results are freed at once and their blocks reused
  Array fresh = Vector({5});
  Array y = tape.apply(mul_, {a, fresh});
  EXPECT_EQ(Values(tape.gradient({y}, {a})[0]), Floats{5});
}

TEST_P(Tapes, TrainingStepsShareOnePlan) {
  Array w = Vector({1, 1}), x = Vector({2, 3}), rate = Vector({-0.125});
  for (int step = 0; step < 3; step++) {
    Tape tape(*this);
    tape.watch(w);
    Array loss = tape.apply(mul_, {tape.apply(mul_, {w, x}), w});
    w = add_({w, mul_({tape.gradient({loss}, {w})[0], rate})[0]})[0];
  }
  EXPECT_EQ(Values(w), (Floats{0.125, 0.015625}));  // each step: w -= w x / 4
}

TEST_P(Tapes, BroadcastAndRelu) {
  Array a = Vector({-1, 2, 3}), b = Vector({10});
  Tape tape(*this);
  tape.watch(a);
  tape.watch(b);
  Array y = tape.apply(mul_, {tape.apply(relu_, {a}), b});
  Arrays d = tape.gradient({y}, {a, b});
  EXPECT_EQ(Values(d[0]), (Floats{0, 10, 10}));
  EXPECT_EQ(Values(d[1]), Floats{5});
}

struct Program {
  std::function<Array(keel_trace*, const keel_leaf*)> body;
  static keel_rc Run(void* arg, keel_trace* t, const keel_leaf* leaves, uint32_t, keel_error** err) {
    return keel_trace_result(t, nullptr, static_cast<Program*>(arg)->body(t, leaves).get(), err);
  }
  // Its value at x as a function whose call the tape records.
  Array called(const keel::Context& context, const std::string& device, keel_tape* tape, const Array& x) {
    keel_function* made = nullptr;
    keel::call(keel_function_new, context.get(), "f", device.c_str(), nullptr, 0u, Run,
               static_cast<void*>(this), nullptr, &made);
    keel::Handle<keel_function, keel_function_free> f(made);
    keel_leaf leaf{KEEL_LEAF_ARRAY, 0, "x", x.get(), 0, 0, nullptr};
    keel_array* out = nullptr;
    uint32_t n = 0;
    keel::call(keel_function_call, f.get(), nullptr, tape, "", &leaf, 1u, &out, 1u, &n);
    return Array(out);
  }
};

TEST_P(Tapes, CallsOfFunctionsAreRecorded) {
  Program program{[&](keel_trace*, const keel_leaf* in) {
    Array x(keel_array_retain(in[0].array));
    return mul_({exp_({x})[0], x})[0];
  }};
  Array x = Vector({0, 1});
  Tape tape(*this);
  tape.watch(x);
  Array y = program.called(context_, GetParam(), tape.handle.get(), x);
  Floats d = Values(tape.gradient({y}, {x})[0]);
  EXPECT_FLOAT_EQ(d[0], 1);
  EXPECT_FLOAT_EQ(d[1], 2 * std::exp(1.f));
}

// x w^2 in a branch that captures w, in a function: 2 x w, then 2 x.
TEST_P(Tapes, ArraysThatOnlyBodiesCapture) {
  using Code = std::function<Array()>;
  auto block = [](void* arg, keel_trace* t, keel_array* const*, uint32_t, keel_error** err) {
    return keel_trace_result(t, nullptr, (*static_cast<Code*>(arg))().get(), err);
  };
  Array w = Array::of<double>(context_, {}, std::vector<double>{3});
  keel::Op greater(context_, GetParam(), "greater");
  Program program{[&](keel_trace* t, const keel_leaf* in) {
    Array x(keel_array_retain(in[0].array)), zero = Array::of<double>(context_, {}, std::vector<double>{0});
    Code then = [&] { return mul_({mul_({x, w})[0], w})[0]; }, otherwise = [&] { return x; };
    keel_array* out = nullptr;
    uint32_t n = 0;
    keel::call(keel_trace_cond, t, greater({x, zero})[0].get(), +block, static_cast<void*>(&then), +block,
               static_cast<void*>(&otherwise), &out, 1u, &n);
    return Array(out);
  }};
  for (double at : {2., -2.}) {
    Array x = Array::of<double>(context_, {}, std::vector<double>{at});
    Tape outer(*this), tape(*this, {}, outer.handle.get());
    outer.watch(w);
    tape.watch(w);
    Array y = program.called(context_, GetParam(), tape.handle.get(), x);
    Array d = tape.gradient({y}, {w}, {}, KEEL_GRADIENT_ZEROS)[0];
    EXPECT_EQ(d.values<double>()[0], at > 0 ? 12 : 0);
    EXPECT_EQ(outer.gradient({d}, {w}, {}, KEEL_GRADIENT_ZEROS)[0].values<double>()[0], at > 0 ? 4 : 0);
  }
}

TEST_P(Tapes, AGradientInsideAFunction) {
  Program program{[&](keel_trace*, const keel_leaf* in) {
    Array x(keel_array_retain(in[0].array));
    Tape outer(*this), inner(*this, {}, outer.handle.get());
    outer.watch(x);
    inner.watch(x);
    Array y = inner.apply(mul_, {inner.apply(mul_, {x, x}), x});
    Array dx = inner.gradient({y}, {x})[0];
    return outer.gradient({dx}, {x})[0];
  }};
  keel_function* made = nullptr;
  keel::call(keel_function_new, context_.get(), "f", GetParam().c_str(), nullptr, 0u, Program::Run,
             static_cast<void*>(&program), nullptr, &made);
  keel::Handle<keel_function, keel_function_free> f(made);
  Array x = Vector({2, 5});
  keel_leaf leaf{KEEL_LEAF_ARRAY, 0, "x", x.get(), 0, 0, nullptr};
  keel_array* out = nullptr;
  uint32_t n = 0;
  keel::call(keel_function_call, f.get(), nullptr, nullptr, "", &leaf, 1u, &out, 1u, &n);
  EXPECT_EQ(Values(Array(out)), (Floats{12, 30}));
}

TEST_P(Tapes, StopGradient) {
  keel::Op stop(context_, GetParam(), "stop_gradient");
  Array a = Vector({3});
  Tape tape(*this, {{"persistent", "1"}});
  tape.watch(a);
  Array fixed = tape.apply(stop, {tape.apply(mul_, {a, a})}), y = tape.apply(mul_, {fixed, a});
  EXPECT_EQ(Values(tape.gradient({y}, {a})[0]), Floats{9});
  EXPECT_FALSE(tape.gradient({fixed}, {a})[0]);
}

TEST_P(Tapes, GradientsOfTheThirdOrder) {  // x^4 at 3: 108, 108, 72
  Array x = Vector({3});
  Tape third(*this), second(*this, {}, third.handle.get()), first(*this, {}, second.handle.get());
  for (Tape* tape : {&first, &second, &third}) tape->watch(x);
  Array square = first.apply(mul_, {x, x});
  Array d = first.gradient({first.apply(mul_, {square, square})}, {x})[0], dd = second.gradient({d}, {x})[0];
  EXPECT_EQ(Values(d), Floats{108});
  EXPECT_EQ(Values(dd), Floats{108});
  EXPECT_EQ(Values(third.gradient({dd}, {x})[0]), Floats{72});
}

TEST_P(Tapes, ResetForgetsWhatIsWatched) {
  Array a = Vector({3});
  Tape tape(*this, {{"persistent", "1"}});
  tape.watch(a);
  Array y = tape.apply(mul_, {a, a});
  keel_tape_reset(tape.handle.get());
  EXPECT_FALSE(tape.gradient({y}, {a})[0]);
  EXPECT_FALSE(tape.gradient({tape.apply(mul_, {a, a})}, {a})[0]);
}

Array Jacobian(keel_tape* tape, const Array& y, const Array& x, uint32_t flags = 0) {
  keel_array *from = y.get(), *of = x.get(), *out = nullptr;
  keel::call(keel_tape_gradient, tape, &from, 1u, nullptr, &of, nullptr, 1u, flags | KEEL_GRADIENT_JACOBIAN,
             &out);
  return Array(out);
}

TEST_P(Tapes, Jacobians) {
  Array x = Vector({2, 3}), other = Vector({7});
  Tape outer(*this), tape(*this, {{"persistent", "1"}}, outer.handle.get());
  outer.watch(x);
  tape.watch(x);
  Array y = tape.apply(mul_, {x, x});
  Array d = Jacobian(tape.handle.get(), y, x);
  EXPECT_EQ(d.shape().size(), 2u);
  EXPECT_EQ(Values(d), (Floats{4, 0, 0, 6}));
  EXPECT_FALSE(Jacobian(tape.handle.get(), y, other));
  EXPECT_EQ(Values(Jacobian(tape.handle.get(), y, other, KEEL_GRADIENT_ZEROS)), (Floats{0, 0}));
  EXPECT_EQ(Values(outer.gradient({d}, {x})[0]), (Floats{2, 2}));
  EXPECT_TRUE(keel_test::Has(Failure([&] { Jacobian(tape.handle.get(), Array(), x); }), "'ys[0]' is NULL"));
  EXPECT_TRUE(keel_test::Has(Failure([&] { Jacobian(tape.handle.get(), y, x, 8); }),
                             "keel_tape_gradient: 'flags' is 10"));
  EXPECT_TRUE(keel_test::Has(Failure([&] { Jacobian(nullptr, y, x); }), "tape"));
}

// x^2 with the gradient that `backward` returns.
struct Custom {
  std::function<Arrays(Array x, Array y, Array dy)> backward;
  static keel_rc Run(void* arg, keel_trace* t, const keel_leaf* leaves, uint32_t n, keel_error** err) {
    EXPECT_EQ(n, 3u);
    auto in = [&](uint32_t i) { return Array(keel_array_retain(leaves[i].array)); };
    for (const Array& dx : static_cast<Custom*>(arg)->backward(in(0), in(1), in(2)))
      if (keel_rc rc = keel_trace_result(t, nullptr, dx.get(), err); rc != KEEL_OK) return rc;
    return KEEL_OK;
  }
  Array operator()(keel_trace* within, keel_tape* tape, const Array& x, const Array& y) {
    keel_array *xs = x.get(), *ys = y.get(), *out = nullptr;
    keel::call(keel_trace_custom, within, tape, "mine", &xs, 1u, &ys, 1u, Run, static_cast<void*>(this),
               &out);
    return Array(out);
  }
};

TEST_P(Tapes, CustomGradients) {
  Custom custom{[&](const Array& x, const Array&, const Array& dy) { return mul_({mul_({x, x})[0], dy}); }};
  Array x = Vector({2, 3});
  Tape outer(*this), tape(*this, {}, outer.handle.get());
  outer.watch(x);
  tape.watch(x);
  Array y = custom(nullptr, tape.handle.get(), x, mul_({x, x})[0]);
  Array d = tape.gradient({y}, {x}, {Vector({1, 10})})[0];
  EXPECT_EQ(Values(y), (Floats{4, 9}));
  EXPECT_EQ(Values(d), (Floats{4, 90}));                            // x^2 dy
  EXPECT_EQ(Values(outer.gradient({d}, {x})[0]), (Floats{4, 60}));  // 2 x dy
  EXPECT_EQ(Values(custom(nullptr, nullptr, x, y)), (Floats{4, 9}));
}

TEST_P(Tapes, CustomGradientsInFunctions) {
  Custom custom{[&](const Array&, const Array& y, const Array& dy) { return mul_({y, dy}); }};
  Program program{[&](keel_trace* t, const keel_leaf* in) {
    Array x(keel_array_retain(in[0].array));
    return mul_({custom(t, nullptr, x, mul_({x, x})[0]), x})[0];
  }};
  Array x = Vector({2, 3});
  Tape tape(*this);
  tape.watch(x);
  EXPECT_EQ(Values(tape.gradient({program.called(context_, GetParam(), tape.handle.get(), x)}, {x})[0]),
            (Floats{12, 36}));  // x^2 + x^2 x
}

TEST_P(Tapes, CustomGradientsThatDoNotFit) {
  Array x = Vector({2, 3});
  Tape tape(*this);
  tape.watch(x);
  auto failure = [&](Custom custom) { return Failure([&] { custom(nullptr, tape.handle.get(), x, x); }); };
  EXPECT_TRUE(keel_test::Has(failure({[](const Array&, const Array&, const Array& dy) {
                               return Arrays{dy, dy};
                             }}),
                             "custom gradient \"mine\": backward returned 2 gradients, expected 1"));
  EXPECT_TRUE(
      keel_test::Has(failure({[&](const Array&, const Array&, const Array&) { return Arrays{Vector({1})}; }}),
                     "the gradient of argument 0 is f32[1], but the argument is f32[2]"));
  Custom custom;
  EXPECT_TRUE(
      keel_test::Has(Failure([&] { custom(nullptr, tape.handle.get(), Array(), x); }), "'xs[0]' is NULL"));
  EXPECT_TRUE(
      keel_test::Has(Failure([&] { custom(nullptr, tape.handle.get(), x, Array()); }), "'ys[0]' is NULL"));
}

TEST_P(Tapes, BadInput) {
  Tape tape(*this);
  const int64_t shape[] = {1};
  Array i = Array::of<int32_t>(context_, shape, std::vector<int32_t>{3});
  tape.watch(i);
  Array y = tape.apply(keel::Op(context_, GetParam(), "mul"), {i, i});
  EXPECT_NE(Failure([&] { tape.gradient({y}, {i}); }), "");
  EXPECT_NE(Failure([&] { tape.gradient({Array()}, {i}); }).find("'ys[0]' is NULL"), std::string::npos);
  EXPECT_NE(Failure([&] {
              Tape bad(*this, {{"persistent", "yes"}});
            }).find("expected 0 or 1"),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Device, Tapes, testing::ValuesIn(keel_test::Devices()),
                         [](const auto& info) { return info.param; });

}  // namespace
