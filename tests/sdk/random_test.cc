// random_test.cc: seeds and generators (random.hpp).
#include "devices.h"

#include <cmath>

namespace {

using keel::Tensor;
using sdk_test::Failure;
using sdk_test::Has;

class Randoms : public sdk_test::OnEachDevice {};
KEEL_ON_EACH_DEVICE(Randoms);

TEST_P(Randoms, ASeedBeginsTheSameNumbersAnew) {
  keel::set_seed(42);
  Tensor a = keel::random_normal({3, 4}), b = keel::random_normal({3, 4});
  EXPECT_EQ(a.type(), "f32[3, 4]");
  EXPECT_FALSE(same(a, b));
  keel::set_seed(42);
  EXPECT_TRUE(same(a, keel::random_normal({3, 4})));
  EXPECT_TRUE(same(b, keel::random_normal({3, 4})));
  keel::set_seed(43);
  EXPECT_FALSE(same(a, keel::random_normal({3, 4})));
}

TEST_P(Randoms, TheSameBitsOnEveryDevice) {
  for (keel_dt dtype : {KEEL_I32, KEEL_I64, KEEL_F32, KEEL_F64, KEEL_F16, KEEL_BF16}) {
    keel::Generator mine(7), reference(7);
    for (const keel::Ints& dims : {keel::Ints{1000}, keel::Ints{0, 3}, keel::Ints{1}, keel::Ints{7, 3}}) {
      Tensor here = mine.uniform(dims, {.low = -1, .high = 100, .dtype = dtype}), there;
      {
        keel::Scope on = keel::device("reference");
        there = reference.uniform(dims, {.low = -1, .high = 100, .dtype = dtype});
      }
      EXPECT_TRUE(same(here, there)) << here.type();
    }
  }
}

TEST_P(Randoms, NumbersAreWhereTheyWereAskedToBe) {
  keel::Generator g(1);
  Tensor ints = g.uniform({10000}, {.low = -3, .high = 4, .dtype = KEEL_I32});
  std::map<int32_t, int> counts;
  for (int32_t v : ints.values<int32_t>()) counts[v]++;
  EXPECT_EQ(counts.size(), 7u);
  EXPECT_EQ(counts.begin()->first, -3);
  for (auto [value, count] : counts) EXPECT_NEAR(count, 10000 / 7, 200) << value;
  double sum = 0, squares = 0;
  for (float v : g.normal({20000}, {.mean = 2, .stddev = 3}).values<float>()) sum += v, squares += v * v;
  EXPECT_NEAR(sum / 20000, 2, 0.1);
  EXPECT_NEAR(std::sqrt(squares / 20000 - 4), 3, 0.1);
}

TEST_P(Randoms, ATracedFunctionDrawsNewNumbersInEachRun) {
  keel::Generator mine(3), same_seed(3);
  auto f = keel::function("f", [&](const Tensor& x) { return x + mine.normal({2}); });
  Tensor zero = {0.f, 0.f};
  for (int i = 0; i < 3; i++) EXPECT_TRUE(same(f(zero), zero + same_seed.normal({2}))) << i;
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_TRUE(same(mine.normal({2}), same_seed.normal({2}))) << "eager code goes on where the graph was";
}

TEST_P(Randoms, TruncatedNumbersCategoriesAndOrders) {
  keel::Generator g(1);
  double sum = 0;
  for (float v : g.truncated_normal({20000}, {.low = 0, .mean = 5, .stddev = 2}).values<float>()) {
    ASSERT_TRUE(v >= 5 && v <= 9) << v;
    sum += v;
  }
  EXPECT_NEAR(sum / 20000, 5 + 2 * 0.7228, 0.05);  // of a half normal number up to 2: 0.7228
  Tensor found = g.categorical({-INFINITY, 0.f, 0.f}, {1000});
  EXPECT_EQ(found.type(), "i64[1000]");
  std::map<int64_t, int> counts;
  for (int64_t i : found.values<int64_t>()) counts[i]++;
  EXPECT_EQ(counts.count(0), 0u);
  EXPECT_NEAR(counts[1], 500, 80);
  const Tensor x = {1.f, 2.f, 3.f, 4.f, 5.f};
  std::vector<float> moved = g.shuffle(x).values<float>();
  std::sort(moved.begin(), moved.end());
  EXPECT_EQ(moved, x.values<float>());
  EXPECT_NE(Failure([&] { g.shuffle(x, 1); }), "");
}

TEST_P(Randoms, OptionsThatDoNotFitAreErrors) {
  EXPECT_TRUE(Has(Failure([] { keel::random_uniform({2}, {.high = 1.5, .dtype = KEEL_I32}); }), "1.5"));
  EXPECT_NE(Failure([] { keel::random_normal({2}, {.dtype = KEEL_I32}); }), "");
}

}  // namespace
