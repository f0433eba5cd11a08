// nonzero_test.cc: nonzero and unique, which find the sizes of their results: eagerly, in a trace for all
// sizes, in a file and a text, in gradients. The oracles count elements one by one.
#include "devices.h"

#include <filesystem>

namespace {

using keel::Tensor;
using sdk_test::Failure;
using sdk_test::Has;
class Nonzero : public sdk_test::OnEachDevice {};
KEEL_ON_EACH_DEVICE(Nonzero);

using Shape = std::vector<int64_t>;
const std::vector<Shape> kShapes = {{1}, {0}, {9}, {3, 4}, {0, 3}, {2, 3, 4}, {1, 1, 1}, {2, 1, 3, 2}};

int64_t SizeOf(const Shape& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

// Every `step`-th element is its number + 1, the others are 0; step 0: all are.
std::vector<float> Elements(int64_t n, int64_t step) {
  std::vector<float> all(static_cast<size_t>(n));
  for (int64_t i = 0; step && i < n; i += step) all[static_cast<size_t>(i)] = static_cast<float>(i + 1);
  return all;
}

Tensor Shaped(const std::vector<float>& elements, const Shape& shape) {
  return keel::reshape(Tensor(elements), std::vector<keel::Dim>(shape.begin(), shape.end()));
}

// One row of indices for each dim.
std::vector<int64_t> Places(const std::vector<float>& elements, const Shape& shape) {
  std::vector<int64_t> rows;
  int64_t stride = SizeOf(shape);
  for (int64_t size : shape) {
    stride = size ? stride / size : 0;
    for (size_t i = 0; i < elements.size(); i++)
      if (elements[i] != 0) rows.push_back(static_cast<int64_t>(i) / stride % size);
  }
  return rows;
}

TEST_P(Nonzero, RanksAndSizes) {
  for (const Shape& shape : kShapes)
    for (int64_t step : {0, 1, 2, 5}) {
      const std::vector<float> x = Elements(SizeOf(shape), step);
      const std::vector<int64_t> wanted = Places(x, shape);
      Tensor i = keel::nonzero(Shaped(x, shape)), of_mask = keel::nonzero(Shaped(x, shape) > 0);
      ASSERT_EQ(i.dim(0).number(), static_cast<int64_t>(shape.size()));
      EXPECT_EQ(i.values<int64_t>(), wanted);
      EXPECT_EQ(of_mask.values<int64_t>(), wanted);
    }
}

// The places, the chosen elements, and a tensor whose dims have the new size.
auto Chosen() {
  return keel::function("chosen",
                        [](const Tensor& x) {
                          Tensor at = keel::nonzero(x);
                          Tensor y = keel::gather_nd(x, keel::transpose(at));
                          return std::tuple(at, y * 2, keel::zeros({at.dim(1), 3}));
                        },
                        {.args = {"x"}, .signature = "x: f32[n, m]"});
}

void CheckChosen(const Shape& shape, int64_t step, const Tensor& at, const Tensor& doubled,
                 const Tensor& zeros) {
  const std::vector<float> x = Elements(SizeOf(shape), step);
  std::vector<float> wanted;
  for (float v : x)
    if (v != 0) wanted.push_back(v * 2);
  EXPECT_EQ(at.values<int64_t>(), Places(x, shape));
  EXPECT_EQ(doubled.values<float>(), wanted);
  EXPECT_EQ(zeros.type(), "f32[" + std::to_string(wanted.size()) + ", 3]");
}

const std::vector<Shape> kMatrices = {{3, 4}, {0, 2}, {2, 0}, {1, 1}, {5, 3}};

TEST_P(Nonzero, OneTraceForAllSizes) {
  auto f = Chosen();
  for (const Shape& shape : kMatrices)
    for (int64_t step : {0, 1, 3}) {
      auto [at, doubled, zeros] = f(Shaped(Elements(SizeOf(shape), step), shape));
      CheckChosen(shape, step, at, doubled, zeros);
    }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(Nonzero, SavedAndReadAgain) {
  const std::string file = testing::TempDir() + "/nonzero-" + GetParam() + ".keel";
  keel::Module made = Chosen().concrete(Shaped(Elements(6, 2), {2, 3}));
  made.save(file);
  const keel::Context& context = keel::default_context();
  EXPECT_TRUE(Has(made.text(), "= nonzero(x)")) << made.text();
  for (const keel::Module& again :
       {keel::Module::load(context, file), keel::Module::parse(context, made.text())}) {
    keel::Plan plan = keel::Session(again, GetParam()).prepare();
    for (const Shape& shape : kMatrices) {
      auto got = plan.run(std::vector{Shaped(Elements(SizeOf(shape), 2), shape).array()});
      CheckChosen(shape, 2, Tensor(got[0]), Tensor(got[1]), Tensor(got[2]));
    }
  }
  std::filesystem::remove(file);
}

TEST_P(Nonzero, UniqueElements) {
  auto traced =
      keel::function("unique", [](const Tensor& x) { return keel::unique(x); }, {.signature = "x: f32[n]"});
  const std::vector<float> x = {3, 1, 3, 2, 1, 3};
  for (auto [v, first, inverse, counts] : {keel::unique(x), traced(Tensor(x))}) {
    EXPECT_EQ(v.values<float>(), (std::vector<float>{1, 2, 3}));
    EXPECT_EQ(first.values<int64_t>(), (std::vector<int64_t>{1, 3, 0}));
    EXPECT_EQ(inverse.values<int64_t>(), (std::vector<int64_t>{2, 0, 2, 1, 0, 2}));
    EXPECT_EQ(counts.values<int64_t>(), (std::vector<int64_t>{2, 1, 3}));
  }
  for (int64_t n : {0, 1, 5}) {
    auto [v, first, inverse, counts] = traced(Tensor(std::vector<float>(static_cast<size_t>(n), 7)));
    EXPECT_EQ(v.values<float>(), std::vector<float>(static_cast<size_t>(std::min<int64_t>(n, 1)), 7));
    EXPECT_EQ(inverse.values<int64_t>(), std::vector<int64_t>(static_cast<size_t>(n), 0));
  }
}

TEST_P(Nonzero, GradientsOfUniqueFlowToFirstOccurrences) {
  auto gradient = [](const Tensor& x) {
    keel::Tape tape;
    tape.watch(x);
    auto [v, first, inverse, counts] = keel::unique(x);
    return tape.gradient(keel::reduce_sum(keel::square(v)), x);
  };
  const Tensor x(std::vector<float>{3, 1, 3, 2});
  EXPECT_EQ(gradient(x).values<float>(), (std::vector<float>{6, 2, 0, 4}));
  auto traced = keel::function("gradient", gradient, {.signature = "x: f32[n]"});
  EXPECT_EQ(traced(x).values<float>(), (std::vector<float>{6, 2, 0, 4}));
}

TEST_P(Nonzero, ScalarsAreRefused) {
  EXPECT_TRUE(Has(Failure([] { keel::nonzero(Tensor(1.f)); }), "x has no dims; reshape"));
}

}  // namespace
