// selection_test.cc: results whose sizes only a run knows (trim): eagerly, in a trace for all sizes, in a
// file, in gradients, around control flow and in it. Oracles are literals.
#include "devices.h"

#include <filesystem>
#include <numeric>

namespace {

using keel::Tensor;
using sdk_test::Failure;
using sdk_test::Has;
class Selection : public sdk_test::OnEachDevice {};
KEEL_ON_EACH_DEVICE(Selection);

Tensor Counting(int64_t n) { return keel::cast(keel::iota({n}), KEEL_F32); }

// 0 1 ... times `factor`.
std::vector<float> Multiples(int64_t n, float factor) {
  std::vector<float> all(static_cast<size_t>(n));
  for (size_t i = 0; i < all.size(); i++) all[i] = static_cast<float>(i) * factor;
  return all;
}

auto First(const std::string& name) {
  return keel::function(name,
                        [](const Tensor& x, const Tensor& count) {
                          Tensor y = keel::trim(x, count);
                          return std::tuple(y * 2, keel::reduce_sum(y), keel::zeros({y.dim(0), 2}));
                        },
                        {.args = {"x", "count"}, .signature = "x: f32[n], count: i64[]"});
}

TEST_P(Selection, OneTraceForAllSizes) {
  auto f = First("f");
  for (int64_t n : {0, 1, 7, 60, 7})
    for (int64_t count : {int64_t{0}, n / 2, n}) {
      auto [doubled, sum, pairs] = f(Counting(n), Tensor(count));
      EXPECT_EQ(doubled.values<float>(), Multiples(count, 2)) << n << " " << count;
      EXPECT_EQ(sum.values<float>()[0], static_cast<float>(count * (count - 1)) / 2);
      EXPECT_EQ(pairs.type(), "f32[" + std::to_string(count) + ", 2]");
      EXPECT_EQ(keel::trim(Counting(n), Tensor(count)).values<float>(), Multiples(count, 1)) << "eagerly";
    }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(Selection, InAFile) {
  const std::string file = testing::TempDir() + "/selection-" + GetParam() + ".keel";
  First("f").concrete(Counting(3), Tensor(int64_t{1})).save(file);
  keel::Session saved(keel::Module::load(keel::default_context(), file), GetParam());
  auto plan = saved.prepare();
  for (int64_t count : {3, 0, 1}) {
    auto got = plan.run(std::vector{Counting(3).array(), Tensor(count).array()});
    EXPECT_EQ(Tensor(got[0]).values<float>(), Multiples(count, 2));
  }
  std::filesystem::remove(file);
}

TEST_P(Selection, CountsOutOfRange) {
  auto f = First("f");
  for (int64_t count : {-1, 4}) {
    const std::string words = "count " + std::to_string(count) + " is not in [0, 3]";
    EXPECT_TRUE(Has(Failure([&] { keel::trim(Counting(3), Tensor(count)).values<float>(); }), words));
    EXPECT_TRUE(Has(Failure([&] { std::get<0>(f(Counting(3), Tensor(count))).values<float>(); }), words));
  }
}

TEST_P(Selection, GradientsAreZeroBeyondTheCount) {
  auto f = keel::function("f",
                          [](const Tensor& x, const Tensor& count) {
                            keel::Tape tape;
                            tape.watch(x);
                            Tensor y = keel::reduce_sum(keel::square(keel::trim(x, count)));
                            return tape.gradient(y, x);
                          },
                          {.signature = "x: f32[n], count: i64[]"});
  const std::vector<float> wanted[] = {{0, 0, 0}, {0, 0, 0}, {0, 2, 0}, {0, 2, 4}};
  for (int64_t count = 0; count < 4; count++)
    EXPECT_EQ(f(Counting(3), Tensor(count)).values<float>(), wanted[count]);
}

TEST_P(Selection, LoopsAndBranchesTakeTrimmedValues) {
  auto f = keel::function("f",
                          [](const Tensor& x, const Tensor& count) {
                            Tensor y = keel::trim(x, count);
                            auto [sum, sums] = keel::scan(
                                Tensor(0.f), y,
                                [](const Tensor& s, const Tensor& v) { return std::pair(s + v, s + v); });
                            Tensor z = keel::cond(
                                sum > 2, [&] { return y * 10; }, [&] { return y; });
                            return std::tuple(sums, z);
                          },
                          {.signature = "x: f32[n], count: i64[]"});
  const std::vector<float> sums[] = {{}, {0}, {0, 1}, {0, 1, 3}}, kept[] = {{}, {0}, {0, 1}, {0, 10, 20}};
  for (int64_t count = 0; count < 4; count++) {
    auto [all, z] = f(Counting(5), Tensor(count));
    EXPECT_EQ(all.values<float>(), sums[count]);
    EXPECT_EQ(z.values<float>(), kept[count]);
  }
}

TEST_P(Selection, BodiesOfATraceTrim) {
  auto branch = keel::function("branch", [](const Tensor& x) {
    return keel::cond(
        keel::reduce_sum(x) > 0, [&] { return keel::reduce_sum(keel::trim(x, 2)); }, [] { return 9.f; });
  });
  auto loop = keel::function("loop", [](const Tensor& x) {
    return keel::while_loop(
        x, [](const Tensor& v) { return keel::reduce_sum(v) < 9; },
        [](const Tensor& v) { return v + keel::reduce_sum(keel::trim(v, 2)); });
  });
  auto scan = keel::function("scan", [](const Tensor& x) {
    return keel::scan(Tensor(0.f), x,
                      [&](const Tensor& s, const Tensor& v) {
                        return std::pair(s + keel::reduce_sum(keel::trim(x, keel::cast(v, KEEL_I64))), v);
                      })
        .first;
  });
  EXPECT_EQ(branch(Counting(3)).values<float>(), std::vector<float>{1});
  EXPECT_EQ(loop(Counting(3)).values<float>(), (std::vector<float>{4, 5, 6}));  // 0 1 2, then 1 2 3
  EXPECT_EQ(scan(Counting(4)).values<float>(), std::vector<float>{4});          // 0 + 0 + 1 + 3
}

TEST_P(Selection, EagerBranchesAndLoopsTrim) {
  Tensor x = Counting(3);
  Tensor y = keel::cond(
      keel::reduce_sum(x) > 0, [&] { return keel::trim(x, 2); }, [&] { return x; });
  EXPECT_EQ(y.values<float>(), Multiples(2, 1));
  Tensor z = keel::while_loop(
      x, [](const Tensor& v) { return keel::reduce_sum(v) < 9; },
      [](const Tensor& v) { return v + keel::reduce_sum(keel::trim(v, 2)); });
  EXPECT_EQ(z.values<float>(), (std::vector<float>{4, 5, 6}));  // 0 1 2, then 1 2 3
}

}  // namespace
