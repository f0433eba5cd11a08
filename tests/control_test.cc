// control_test.cc: control flow through the C API (keel_control.h): blocks, on each device. Oracles are
// literals. sdk/ tests the C++ forms.
#include "tests/control.h"

namespace {

using namespace control_test;

TEST_P(Control, BranchesNestAndCapture) {
  Array ten = Scalar(10);
  Program program = [&](keel_trace* t, const Array& x) {
    Array doubled = Do("add", x, x);
    return Cond(t, Do("greater", Sum(x), Scalar(0)), {[&](keel_trace* then, const Arrays&) {
                  return Cond(then, Do("greater", Sum(doubled), Scalar(10)),
                              {[&](auto, auto&) { return Arrays{Do("add", doubled, ten)}; }},
                              {[&](auto, auto&) { return Arrays{Do("mul", doubled, x)}; }});
                }},
                {[&](auto, auto&) { return Arrays{x}; }})[0];
  };
  Both(program, {1, 2}, {2, 8});
  Both(program, {3, 4}, {16, 18});
  Both(program, {-3, -4}, {-3, -4});
}

TEST_P(Control, SwitchTakesTheBranchOfANumber) {
  auto at = [&](int i) {
    return [=, this](keel_trace* t, const Array& x) {
      Array index = keel::Op(context_, GetParam(), "cast", keel::Attrs().dtype("to", KEEL_I32))(
          {Do("add", Do("mul", Sum(x), Scalar(0)), Scalar(static_cast<float>(i)))})[0];
      return Switch(t, index,
                    {{[&](auto, auto&) { return Arrays{x}; }},
                     {[&](auto, auto&) { return Arrays{Do("add", x, x)}; }},
                     {[&](auto, auto&) { return Arrays{Do("mul", x, x)}; }}})[0];
    };
  };
  Both(at(0), {3, 4}, {3, 4});
  Both(at(1), {3, 4}, {6, 8});
  Both(at(2), {3, 4}, {9, 16});
  for (int i : {-1, 3}) {
    std::string wanted = "index " + std::to_string(i) + " is not in [0, 3)";
    EXPECT_TRUE(Has(Failure([&] { at(i)(nullptr, F({1})); }), wanted));
    keel::Plan plan = keel::Session(Traced(at(i)), GetParam()).prepare();
    EXPECT_TRUE(Has(Failure([&] { plan.run(std::vector{F({1})}); }), wanted));
  }
}

TEST_P(Control, LoopsNestAndCarryNothingElse) {
  Both(
      [&](keel_trace* t, const Array& x) {  // x, added to itself 3 times 4 times
        Block less{[&](auto, const Arrays& c) { return Arrays{Do("less", c[0], I(3))}; }};
        Arrays all =
            While(t, {I(0), x}, less, {[&](keel_trace* body, const Arrays& c) {
                    Block inner{[&](auto, const Arrays& d) { return Arrays{Do("less", d[0], I(4))}; }};
                    Arrays sum = While(body, {I(0), c[1]}, inner, {[&](auto, const Arrays& d) {
                                         return Arrays{Do("add", d[0], I(1)), Do("add", d[1], x)};
                                       }});
                    return Arrays{Do("add", c[0], I(1)), sum[1]};
                  }});
        return all[1];
      },
      {1, 2, 3}, {13, 26, 39});
}

TEST_P(Control, ScanCarriesAndStacks) {
  for (bool reverse : {false, true})
    Both(
        [&](keel_trace* t, const Array& x) {
          Arrays made = Scan(t, {Scalar(100)}, {x, x}, {[&](auto, const Arrays& in) {
                               return Arrays{Do("add", in[0], in[1]), Do("add", in[0], in[2])};
                             }},
                             -1, reverse);
          EXPECT_EQ(made.size(), 2u);
          return Do("sub", made[1], made[0]);
        },
        {1, 2, 3}, reverse ? Floats{0, -1, -3} : Floats{-5, -3, 0});
  Both(
      [&](keel_trace* t, const Array& x) {  // captured values come between carried values and entries
        Array total = Sum(x);
        return Scan(t, {Scalar(100)}, {x}, {[&](auto, const Arrays& in) {
                      return Arrays{in[0], Do("add", Do("sub", total, in[1]), in[0])};
                    }})[1];
      },
      {1, 2, 3}, {105, 104, 103});
  Both(
      [&](keel_trace* t, const Array& x) {
        return Scan(t, {x}, {}, {[&](auto, const Arrays& in) { return Arrays{Do("add", in[0], in[0])}; }},
                    10)[0];
      },
      {1, 3}, {1024, 3072});
}

// As when traced: the body does not run, so it neither prints nor assigns.
TEST_P(Control, ScanOfNoEntries) {
  keel::Variable v(context_, I(5));
  Array none = Array::of<float>(context_, std::vector<int64_t>{0, 2}, Floats{});
  auto program = [&](keel_trace* t, const Array& carry, const Array& xs, keel_dim length) {
    return Scan(t, {carry}, {xs}, {[&](keel_trace* body, const Arrays& in) {
                  EXPECT_TRUE(Writes(body));
                  EXPECT_EQ(keel::Tensor(in[1]).type(), "f32[2]");
                  keel::call(keel_variable_write, v.get(), body, "assign_add", I(1).get());
                  Array two = Do("add", in[1], F({1, 2}));
                  return Arrays{Do("add", in[0], Sum(two)), two, Do("less", Sum(two), in[0]),
                                Scan(body, {in[0]}, {two}, {[&](auto, const Arrays& d) {
                                       return Arrays{Do("mul", d[0], d[1]), I(1)};
                                     }})[1]};
                }},
                length);
  };
  for (keel_dim length : {-1, 0}) {
    Arrays made = program(nullptr, Scalar(7), none, length);
    ASSERT_EQ(made.size(), 4u);
    EXPECT_EQ(Values(made[0]), Floats{7});
    const char* wanted[] = {"f32[0, 2]", "bool[0]", "i32[0, 2]"};
    for (size_t i = 0; i < 3; i++) EXPECT_EQ(keel::Tensor(made[i + 1]).type(), wanted[i]);
    EXPECT_EQ(v.read().values<int32_t>()[0], 5);
  }
  Array leaked;
  Arrays kept = Scan(nullptr, {}, {none}, {[&](auto, const Arrays& in) {
                       leaked = in[0];
                       return Arrays{};
                     }});
  EXPECT_TRUE(kept.empty());
  EXPECT_TRUE(Has(Failure([&] { Do("add", leaked, leaked); }), "has ended"));
  EXPECT_TRUE(Has(Failure([&] {
                    Scan(nullptr, {Scalar(1)}, {none},
                         {[&](auto, const Arrays& in) { return Arrays{in[1]}; }});
                  }),
                  "result 0 of body"));
  EXPECT_TRUE(Has(Failure([&] { Scan(nullptr, {}, {F({1})}, {[](auto, auto& in) { return in; }}, 0); }),
                  "has 1 entries, not 0"));
}

INSTANTIATE_TEST_SUITE_P(Device, Control, testing::ValuesIn(keel_test::Devices()),
                         [](const auto& info) { return info.param; });

}  // namespace
