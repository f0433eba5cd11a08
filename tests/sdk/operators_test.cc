// operators_test.cc: arithmetic, comparisons, weak literals, broadcasting, and errors with source locations.
#include <cmath>
#include <thread>

#include "devices.h"

namespace {

using keel::Tensor;
using sdk_test::Failure;
using sdk_test::Has;

class Operators : public sdk_test::OnEachDevice {};
KEEL_ON_EACH_DEVICE(Operators);

std::string Text(const Tensor& t) { return t.type() + " " + to_string(t); }

TEST_P(Operators, Arithmetic) {
  Tensor a = {{1.f, 2.f}, {3.f, 4.f}}, b = {10.f, 20.f};
  EXPECT_EQ(Text(a + b), "f32[2, 2] [[11. 22.]\n [13. 24.]]");
  EXPECT_EQ(Text(b - a), "f32[2, 2] [[ 9. 18.]\n [ 7. 16.]]");
  EXPECT_EQ(Text(a * a), "f32[2, 2] [[ 1.  4.]\n [ 9. 16.]]");
  EXPECT_EQ(Text(b / a), "f32[2, 2] [[10.        10.       ]\n [ 3.3333333  5.       ]]");
  EXPECT_EQ(Text(-b), "f32[2] [-10. -20.]");
  EXPECT_EQ(Text(Tensor{7, -7} % Tensor{3, 3}), "i32[2] [1 2]");
  EXPECT_EQ(Text(Tensor{7, -7} / 2), "i32[2] [ 3 -3]");
  EXPECT_EQ(Text(keel::zeros({0, 2}) + 1), "f32[0, 2] []");
}

TEST_P(Operators, LiteralsTakeThePartnersDtype) {
  EXPECT_EQ(Text(keel::f64({1, 2}) + 1), "f64[2] [2. 3.]");
  EXPECT_EQ(Text(1 + keel::f64({1, 2})), "f64[2] [2. 3.]");
  EXPECT_EQ(Text(keel::i64({1, 2}) * 3), "i64[2] [3 6]");
  EXPECT_EQ(Text(Tensor{1.f, 2.f} - 0.5), "f32[2] [0.5 1.5]");
  EXPECT_EQ(Text(keel::tensor({1, 2}, KEEL_F16) * 0.5), "f16[2] [0.5 1. ]");
  EXPECT_EQ(Text(keel::tensor({250}, KEEL_U8) + 10), "u8[1] [4]");
  EXPECT_EQ(Text(Tensor{1, 2} + std::vector{10, 20}), "i32[2] [11 22]");
  EXPECT_EQ(Text(keel::f64({1, 2}) + std::vector{10, 20}), "f64[2] [11. 22.]");
}

TEST_P(Operators, ComparisonsAndLogic) {
  Tensor x = {1, 2, 3};
  EXPECT_EQ(Text(x > 1), "bool[3] [False  True  True]");
  EXPECT_EQ(Text(x >= 2), "bool[3] [False  True  True]");
  EXPECT_EQ(Text(2 < x), "bool[3] [False False  True]");
  EXPECT_EQ(Text(x <= Tensor{3, 2, 1}), "bool[3] [ True  True False]");
  EXPECT_EQ(Text(x == 2), "bool[3] [False  True False]");
  EXPECT_EQ(Text(x != 2), "bool[3] [ True False  True]");
  EXPECT_EQ(Text(~(x == 2)), "bool[3] [ True False  True]");
  EXPECT_EQ(Text((x > 1) & (x < 3)), "bool[3] [False  True False]");
  EXPECT_EQ(Text((x < 2) | (x > 2)), "bool[3] [ True False  True]");
  EXPECT_EQ(Text((x < 2) ^ true), "bool[3] [False  True  True]");
  EXPECT_EQ(Text(x & 2), "i32[3] [0 2 2]");
  EXPECT_EQ(Text(x | 4), "i32[3] [5 6 7]");
  EXPECT_EQ(Text(x ^ 1), "i32[3] [0 3 2]");
  EXPECT_TRUE(!(x[0] > 1) && x[0] < 2);
  EXPECT_EQ(Text(~x), "i32[3] [-2 -3 -4]");
  EXPECT_EQ(Text(Tensor{NAN} == Tensor{NAN}), "bool[1] [False]");
}

TEST_P(Operators, CompoundAssignmentMakesANewValue) {
  Tensor x = {1, 2}, before = x;
  x += 1;
  x *= x;
  x -= Tensor{1, 1};
  EXPECT_EQ(Text(x), "i32[2] [3 8]");
  x /= 2;
  EXPECT_EQ(Text(x), "i32[2] [1 4]");
  EXPECT_EQ(Text(before), "i32[2] [1 2]");
}

TEST_P(Operators, ErrorsNameOpTypesAndPlace) {
  Tensor a = {1, 2}, b = {1, 2, 3};
  int line = __LINE__ + 1;
  std::string said = Failure([&] { a + b; });
  EXPECT_TRUE(said.starts_with("add(i32[2], i32[3]): shapes [2] and [3] do not broadcast")) << said;
  EXPECT_TRUE(said.ends_with("(operators_test.cc:" + std::to_string(line) + ")")) << said;
  try {
    a + 1.5;
    FAIL();
  } catch (const keel::Error& e) {
    EXPECT_TRUE(Has(e.what(), "add(i32[2], 1.5): the literal 1.5 is a float, the other operand i32 (oper"));
    EXPECT_TRUE(Has(e.hint(), "cast the tensor"));
    EXPECT_EQ(e.code(), KEEL_INVALID);
    EXPECT_EQ(e.where().line, static_cast<unsigned>(line + 4));
  }
  EXPECT_TRUE(Has(Failure([&] { (Tensor{1} / Tensor{0}).values<int32_t>(); }), "integer division by zero"));
  EXPECT_TRUE(Has(Failure([&] { a + 3000000000; }), "the literal 3000000000 does not fit in i32"));
  EXPECT_TRUE(Has(Failure([&] { a + Tensor(); }), "an empty Tensor, made by Tensor(), cannot be an operand"));
  EXPECT_TRUE(Has(Failure([&] { a += b; }), "(operators_test.cc:"));
}

TEST_P(Operators, ResultsInPlaceOfExceptions) {
  Tensor a = {1, 2}, b = {1, 2, 3};
  keel::Result<Tensor> good = keel::result([&] { return a + a; }), bad = keel::result([&] { return a + b; });
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(Text(*good), "i32[2] [2 4]");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code(), KEEL_INVALID);
  EXPECT_THROW(bad.value(), keel::Error);
  EXPECT_EQ(Text(std::move(bad).value_or(a)), "i32[2] [1 2]");
  keel::Result<void> nothing = keel::result([&] { a + b; });
  EXPECT_FALSE(nothing.ok());
  EXPECT_THROW(keel::result([] { throw 7; }).value(), int);
}

TEST_P(Operators, ManyThreadsShareBoundOps) {
  Tensor x = {1.f, 2.f};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; t++)
    threads.emplace_back([&, name = GetParam()] {
      keel::Scope on = keel::device(name);
      for (int i = 0; i < 200; i++) {
        Tensor y = keel::reduce_sum(x * 2 + 1, {.axes = {0}, .keep = i % 2 == 0});
        ASSERT_EQ(y.item<float>(), 8);
      }
    });
  for (std::thread& t : threads) t.join();
}

}  // namespace
