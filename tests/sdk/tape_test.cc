// tape_test.cc: keel::Tape, eagerly and inside traced functions, with the same results. Oracles are literals
// worked out by hand.
#include "tapes.h"

namespace {

using namespace sdk_test;

KEEL_ON_EACH_DEVICE(Tapes);

TEST_P(Tapes, VariablesAreWatchedWhenTheyAreRead) {
  Variable w({{1.f}});
  Tape tape;
  Tensor loss = w * w, dw = tape.gradient(loss, w);
  EXPECT_EQ(dw.type() + " " + Text(dw), "f32[1, 1] [[2.]]");
}

TEST_P(Tapes, WhatIsWatchedCounts) {
  Variable w({2.f}), fixed({5.f}, {.trainable = false});
  Both(
      [&](const Tensor& x) {
        Tape tape;
        tape.watch(x);
        Tensor other = {7.f}, y = x * w * fixed * other;
        Tensors d = tape.gradient(y, {x, w});
        return d;
      },
      {"[70.]", "[105.]"});
  Both(
      [&](const Tensor& x) {
        Tape tape;
        Tensor y = x * w * fixed;
        return tape.gradient(y, {x, w, fixed}, {.zeros = true});
      },
      {"[0.]", "[15.]", "[0.]"});
  Both(
      [&](const Tensor& x) {
        Tape tape({.watch_accessed_variables = false});
        tape.watch(fixed);
        Tensor y = x * w * fixed;
        return tape.gradient(y, {x, w, fixed}, {.zeros = true});
      },
      {"[0.]", "[0.]", "[6.]"});
  Tape tape;
  EXPECT_TRUE(tape.gradient(w * w, fixed).empty());
}

TEST_P(Tapes, FromTheMomentItIsWatched) {
  Variable w({2.f});
  Both(
      [&](const Tensor& x) {
        Tensor before = x * w;  // 6
        Tape tape({.persistent = true});
        Tensor y = before * x * w;  // w counts once, x not at all
        tape.watch(x);
        Tensor z = y * x;  // 36 x
        Tensors d = tape.gradient(z, {w, x});
        return Tensors{y, d[0], d[1]};
      },
      {"[36.]", "[54.]", "[36.]"});
}

TEST_P(Tapes, ScopesWithoutRecording) {
  Variable w({2.f});
  Both(
      [&](const Tensor& x) {
        Tape tape;
        tape.watch(x);
        Tensor hidden;
        {
          auto stopped = tape.stop_recording();
          hidden = x * x;
        }
        return Tensors{tape.gradient(x * hidden, x)};
      },
      {"[9.]"});
  Both(
      [&](const Tensor& x) {
        Tape tape;
        Tensor hidden;
        {
          auto none = keel::no_record();
          hidden = w * x;  // 6
        }
        return Tensors{tape.gradient(w * hidden, w)};
      },
      {"[6.]"});
}

// An outer tape records while an inner tape is stopped; no_record() hides from both.
TEST_P(Tapes, ScopesOfNestedTapes) {
  Both(
      [&](const Tensor& x) {
        Tape outer;
        outer.watch(x);
        Tape inner;
        inner.watch(x);
        Tensor a, b;
        {
          auto stopped = inner.stop_recording();
          a = x * x;
        }
        {
          auto none = keel::no_record();
          b = x * 2;
        }
        Tensor y = a * b * x;  // 18 x to inner, 6 x^3 to outer
        return Tensors{inner.gradient(y, x), outer.gradient(y, x)};
      },
      {"[54.]", "[162.]"});
}

TEST_P(Tapes, HigherOrder) {
  Variable w({2.f});
  Both(
      [&](const Tensor&) {
        Tape outer;
        Tensor first;
        {
          Tape inner;
          first = inner.gradient(w * w * w, w);
        }
        return Tensors{first, outer.gradient(first, w)};
      },
      {"[12.]", "[12.]"});
}

TEST_P(Tapes, AfterAWriteBothReadsCount) {
  Variable w({2.f});
  auto program = [&](const Tensor& x) {
    w.assign(2 + x * 0);
    Tape tape;
    tape.watch(x);
    Tensor y = w * x;  // dw = 3
    w.assign_add(x);   // state blocks gradients
    Tensor z = w * 10;
    Tensors d = tape.gradient(std::vector{y, z}, {w, x});
    d.push_back(z);
    return d;
  };
  Both(program, {"[13.]", "[2.]", "[50.]"});
}

TEST_P(Tapes, SeedsTargetsAndIntermediates) {
  Both(
      [&](const Tensor& x) {
        Tape tape({.persistent = true});
        tape.watch(x);
        Tensor y = x * x, z = keel::exp(x * 0) * y;
        Tensors d = tape.gradient(std::pair(y, z), {x, y}, {.seeds = {Tensor{10.f}, Tensor()}});
        d.push_back(tape.gradient(z, x, {.seeds = {Tensor{-1.f}}}));
        return d;
      },
      {"[66.]", "[11.]", "[-6.]"});
}

struct Layer {
  Variable w, b;
};
struct Point {
  Tensor x, y;
  int number = 4;
};

TEST_P(Tapes, TheStructureOfTheSources) {
  Layer layer{Variable({2.f}), Variable({1.f})};
  std::vector<Variable> list{layer.w, layer.b};
  std::map<std::string, Variable> map{{"w", layer.w}};
  Tape tape({.persistent = true});
  Point p{{3.f}, {4.f}};
  tape.watch(p.x);
  Tensor y = layer.w * p.x + layer.b;
  auto [dw, db] = tape.gradient(y, layer);
  EXPECT_EQ(Text(dw) + Text(db), "[3.][1.]");
  Tensors of_list = tape.gradient(y, list);
  EXPECT_EQ(Text(of_list.at(0)) + Text(of_list.at(1)), "[3.][1.]");
  EXPECT_EQ(Text(tape.gradient(y, map).at("w")), "[3.]");
  auto [dx, both] = tape.gradient(y, std::tuple(p.x, std::pair(layer.w, std::array{layer.b, layer.b})));
  EXPECT_EQ(Text(dx) + Text(both.first) + Text(both.second[1]), "[2.][3.][1.]");
  Point dp = tape.gradient(y, p);
  EXPECT_EQ(Text(dp.x) + Text(dp.y) + std::to_string(dp.number), "[2.]none4");
  EXPECT_FALSE(tape.gradient(y, std::optional<Variable>()));
}

TEST_P(Tapes, StopGradient) {
  Variable w({2.f});
  Both(
      [&](const Tensor& x) {
        Tape tape;
        tape.watch(x);
        return tape.gradient(keel::stop_gradient(x * w) * x + keel::stop_gradient(w), {x, w},
                             {.zeros = true});
      },
      {"[6.]", "[0.]"});
  Tape tape;
  EXPECT_TRUE(tape.gradient(keel::stop_gradient(w * 3), w).empty());
}

TEST_P(Tapes, HigherOrderByNestedAndPersistentTapes) {  // x^4 at 3: 108, 108, 72, 24
  Both(
      [&](const Tensor& x) {
        Tape first, second, third({.persistent = true}), fourth;
        for (Tape* tape : {&first, &second, &third, &fourth}) tape->watch(x);
        Tensor a = fourth.gradient(x * x * x * x, x), b = third.gradient(a, x), again = third.gradient(a, x);
        Tensor c = second.gradient(b, x);
        return Tensors{a, b, again, c, first.gradient(c, x)};
      },
      {"[108.]", "[108.]", "[108.]", "[72.]", "[24.]"});
}

TEST_P(Tapes, BadInput) {
  Variable w({2.f});
  Both(
      [&](const Tensor&) {
        Tape tape;
        Tensor y = w * w;
        tape.gradient(y, w);
        std::string again = Failure([&] { tape.gradient(y, w); });
        EXPECT_TRUE(Has(again, "A non-persistent tape can only be used to compute one set of gradients"))
            << again;
        tape.reset();
        return Tensors{tape.gradient(w * 5, w)};
      },
      {"[5.]"});
  Tape tape({.persistent = true});
  EXPECT_TRUE(Has(Failure([&] { tape.gradient(w * w, Tensor()); }), "'xs[0]' is NULL"));
  EXPECT_TRUE(Has(Failure([&] { tape.gradient(Tensor(), w); }), "'ys[0]' is NULL"));
  EXPECT_TRUE(Has(Failure([&] { tape.gradient(w * w, w, {.seeds = {w, w}}); }), "2 seeds for 1 targets"));
  Tensor count = {1};
  tape.watch(count);
  EXPECT_TRUE(Has(Failure([&] { tape.gradient(count * 2, count); }), "only floats have gradients"));
}

// d (b a^(b-1)) / db at b = 0 is 1 / a, as d (a^b log a) / da is. At a = 0 both are undefined.
TEST_P(Tapes, PowersWithAPowerOfZero) {
  Tensor a = keel::f64({2, 0.5, 0, 1e-200}), b = keel::f64({0, 0, 0, 0});
  Tape outer({.persistent = true}), tape({.persistent = true});
  for (Tape* t : {&outer, &tape}) t->watch(a), t->watch(b);
  Tensor y = keel::pow(a, b);
  Tensor da = tape.gradient(y, a), db = tape.gradient(y, b);
  auto values = [](const Tensor& t) {
    auto all = t.values<double>();
    return std::vector<double>(all.begin(), all.end());
  };
  EXPECT_EQ(values(da), (std::vector<double>{0, 0, 0, 0}));
  EXPECT_EQ(values(outer.gradient(da, b)), (std::vector<double>{0.5, 2, 0, 1e-200}));
  EXPECT_EQ(values(outer.gradient(db, a)), (std::vector<double>{0.5, 2, 0, 1e200}));
  EXPECT_EQ(values(outer.gradient(da, a)), (std::vector<double>{0, 0, 0, 0}));
}

}  // namespace
