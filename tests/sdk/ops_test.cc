// ops_test.cc: the generated functions: each kind of operand, attribute and result once. conformance/ tests
// the computed values; oracles here are literals.
#include "devices.h"

namespace {

using keel::Tensor;
using sdk_test::Failure;
using sdk_test::Has;

class Ops : public sdk_test::OnEachDevice {};
KEEL_ON_EACH_DEVICE(Ops);

std::string Text(const Tensor& t) { return t.type() + " " + to_string(t); }

TEST_P(Ops, AttributesByName) {
  Tensor a = {{1.f, 2.f}, {3.f, 4.f}}, b = {{5.f, 6.f}, {7.f, 8.f}};
  EXPECT_EQ(Text(keel::matmul(a, b)), "f32[2, 2] [[19. 22.]\n [43. 50.]]");
  EXPECT_EQ(Text(keel::matmul(a, b, {.ta = true})), "f32[2, 2] [[26. 30.]\n [38. 44.]]");
  EXPECT_EQ(Text(keel::matmul(a, b, {.ta = true, .tb = true})), "f32[2, 2] [[23. 31.]\n [34. 46.]]");
  EXPECT_EQ(Text(keel::reduce_mean(a, {.axes = {0}, .keep = true})), "f32[1, 2] [[2. 3.]]");
  EXPECT_EQ(Text(keel::reduce_mean(a, {.axes = 1})), "f32[2] [1.5 3.5]");
  EXPECT_EQ(Text(keel::reduce_sum(a, {.axes = {0, 1}})), "f32[] 10.0");
  EXPECT_EQ(Text(keel::reduce_sum(a)), "f32[] 10.0");
  EXPECT_EQ(Text(keel::reduce_sum(a, {.axes = std::vector<int64_t>()})), Text(a));
  EXPECT_EQ(Text(keel::softmax(Tensor{{0., 0.}, {1., 1.}}, {.axis = 0})).substr(0, 9), "f32[2, 2]");
  EXPECT_EQ(Text(keel::transpose(a, {.perm = {1, 0}})), "f32[2, 2] [[1. 3.]\n [2. 4.]]");
  EXPECT_EQ(Text(keel::leaky_relu(Tensor{-2., 2.}, {.alpha = 0.5})), "f32[2] [-1.  2.]");
}

TEST_P(Ops, AttributesWithoutADefaultComeAfterOperands) {
  Tensor a = {{1, 2}, {3, 4}};
  EXPECT_EQ(Text(keel::cast(a, KEEL_F32)), "f32[2, 2] [[1. 2.]\n [3. 4.]]");
  EXPECT_EQ(Text(keel::reshape(a, {4})), "i32[4] [1 2 3 4]");
  EXPECT_EQ(Text(keel::reshape(a, {-1, 1})), "i32[4, 1] [[1]\n [2]\n [3]\n [4]]");
  EXPECT_EQ(Text(keel::iota({3})), "i64[3] [0 1 2]");
  EXPECT_EQ(Text(keel::one_hot(Tensor{1, 0}, 2, {.dtype = KEEL_I32})), "i32[2, 2] [[0 1]\n [1 0]]");
  EXPECT_EQ(Text(keel::eye(2, {.dtype = KEEL_I32})), "i32[2, 2] [[1 0]\n [0 1]]");
  EXPECT_EQ(Text(keel::eye(2, {.cols = 1})), "f32[2, 1] [[1.]\n [0.]]");
  EXPECT_EQ(Text(keel::fill(7, {.dims = {2}})), "i32[2] [7 7]");
}

TEST_P(Ops, SeveralResults) {
  auto [values, places] = keel::top_k(Tensor{3, 9, 5}, 2);
  EXPECT_EQ(Text(values), "i32[2] [9 5]");
  EXPECT_EQ(Text(places), "i64[2] [1 2]");
  std::vector<Tensor> parts = keel::split(Tensor{1, 2, 3}, {1, 2});
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(Text(parts[0]) + Text(parts[1]), "i32[1] [1]i32[2] [2 3]");
}

TEST_P(Ops, AnyNumberOfOperands) {
  Tensor a = {1, 2}, b = {3};
  EXPECT_EQ(Text(keel::concat({a, b, a})), "i32[5] [1 2 3 1 2]");
  EXPECT_EQ(Text(keel::concat(std::vector{b, a})), "i32[3] [3 1 2]");
  EXPECT_EQ(Text(keel::concat({Tensor{{1}}, Tensor{{2}}}, {.axis = 1})), "i32[1, 2] [[1 2]]");
  EXPECT_EQ(Text(keel::concat({Tensor{1.f}, {2, 3}})), "f32[3] [1. 2. 3.]");
  std::vector<Tensor> twelve(12, b);
  EXPECT_EQ(Text(keel::concat(twelve)), "i32[12] [3 3 3 3 3 3 3 3 3 3 3 3]");
}

TEST_P(Ops, LiteralsTakeTheTypeOfTheirKind) {
  Tensor x = {-1., 2.};
  EXPECT_EQ(Text(keel::maximum(x, 0)), "f32[2] [0. 2.]");
  EXPECT_EQ(Text(keel::maximum(0., {1, -1})), "f32[2] [1. 0.]");
  EXPECT_EQ(Text(keel::select(x > 0, x, 0)), "f32[2] [0. 2.]");
  EXPECT_EQ(Text(keel::select(true, keel::f64({1}), 0)), "f64[1] [1.]");
  EXPECT_EQ(Text(keel::clamp(keel::i64({-5, 5}), -1, 1)), "i64[2] [-1  1]");
  EXPECT_EQ(Text(keel::exp(0)), "f32[] 1.0");
  EXPECT_EQ(Text(keel::add(1, 2)), "i32[] 3");
  EXPECT_EQ(Text(keel::gather(x, {1, 1})), "f32[2] [2. 2.]");
  EXPECT_EQ(keel::random(7, {3}).type(), "f32[3]");
  EXPECT_TRUE(same(keel::random(7, {3}), keel::random(7, {3})));
}

TEST_P(Ops, OperandsThatAreLeftOut) {
  Tensor q = {{1.f, 0.f}};
  EXPECT_EQ(Text(keel::attention(q, q, q)), "f32[1, 2] [[1. 0.]]");
  EXPECT_EQ(Text(keel::attention(q, q, q, keel::none, {.causal = true})), "f32[1, 2] [[1. 0.]]");
  EXPECT_EQ(Text(keel::attention(q, q, q, {{0.}})), "f32[1, 2] [[1. 0.]]");
}

TEST_P(Ops, AttributesAreToldApart) {
  Tensor x = {{1, 2}, {3, 4}};
  for (int round = 0; round < 2; round++) {  // the second lookup of each name is cached
    EXPECT_EQ(Text(keel::reduce_sum(x, {.axes = {0}})), "i32[2] [4 6]");
    EXPECT_EQ(Text(keel::reduce_sum(x, {.axes = {1}})), "i32[2] [3 7]");
    EXPECT_EQ(Text(keel::reduce_sum(x, {.axes = {1}, .keep = true})), "i32[2, 1] [[3]\n [7]]");
    EXPECT_EQ(Text(keel::reduce_max(x, {.axes = {1}})), "i32[2] [2 4]");
    EXPECT_EQ(Text(keel::cast(x, KEEL_I64)), "i64[2, 2] [[1 2]\n [3 4]]");
    EXPECT_EQ(Text(keel::cast(x, KEEL_U8)), "u8[2, 2] [[1 2]\n [3 4]]");
  }
}

TEST_P(Ops, ErrorsNameThePlace) {
  Tensor a = {1, 2};
  EXPECT_TRUE(Failure([&] { keel::matmul(a, a, {.ta = true}); }).starts_with("matmul(i32[2], i32[2]): "));
  EXPECT_TRUE(Has(Failure([&] { keel::exp(a); }), "but must be one of f16, bf16, f32, f64"));
  EXPECT_TRUE(Has(Failure([&] { keel::exp(a); }), "(ops_test.cc:"));
  EXPECT_TRUE(Has(Failure([&] { keel::iota({-1}); }), "(ops_test.cc:"));
  EXPECT_TRUE(Has(Failure([&] { keel::concat({a, Tensor{1.f}}); }), "concat(i32[2], f32[1]): "));
  EXPECT_TRUE(Has(Failure([&] { keel::random(7, {2}, {.kind = "uniformly"}); }), "uniformly"));
}

}  // namespace
