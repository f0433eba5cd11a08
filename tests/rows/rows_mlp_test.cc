// rows_mlp_test.cc: the rows of the perceptron (K7, K8, K9) and of its construction cost (T21).
#include <keel/keel.hpp>

#include "tests/rows/rows.h"

namespace {

using keel::Tensor;

std::pair<keel::Variable, keel::Variable> GenerateWB(uint64_t key, int64_t in, int64_t out) {
  Tensor w = keel::random(key, {in, out}, {.kind = "normal"}), b = keel::zeros({out});
  return {keel::Variable(w), keel::Variable(b)};
}
TEST_P(Rows, K7_GenerateWB) {
  auto [w, b] = GenerateWB(1, 784, 128);
  EXPECT_EQ(w.value().type() + b.value().type(), "f32[784, 128]f32[128]");
  EXPECT_EQ(Printed(keel::reduce_max(keel::abs(b))), "0.0");
  // 100,352 normal numbers: their mean is within 5 / sqrt(n), their variance within 5 sqrt(2 / n)
  EXPECT_LT(std::abs(keel::reduce_mean(w).item<float>()), 0.016f);
  EXPECT_LT(std::abs(keel::reduce_mean(keel::square(w)).item<float>() - 1), 0.023f);
}

// The MLP 784-128-128-128-10. Inputs and biases are 1, so with these weights every logit is 784/1024 + 4.
struct Mlp {
  std::vector<Tensor> params;
  Mlp() {
    const int64_t widths[] = {784, 128, 128, 128, 10};
    for (int k = 0; k < 4; k++) {
      params.push_back(keel::zeros({widths[k], widths[k + 1]}) + (k ? 1.f / 128 : 1.f / 1024));
      params.push_back(keel::zeros({widths[k + 1]}) + 1.f);
    }
  }
  static Tensor logits(Tensor x, const std::vector<Tensor>& p) {
    for (size_t k = 0; k < p.size(); k += 2) {
      x = keel::matmul(x, p[k]) + p[k + 1];
      if (k + 2 < p.size()) x = keel::relu(x);
    }
    return x;
  }
};
const std::vector<float> kLogits(30, 4.765625f);

TEST_P(Rows, K8_MlpEager) {
  EXPECT_EQ(Mlp::logits(keel::zeros({3, 784}) + 1.f, Mlp().params).values<float>(), kLogits);
}

// mlp_pruned returns nothing, so nothing is computed; mlp_returned is the honest one.
TEST_P(Rows, K9_MlpPrunedAndMlpReturned) {
  using Params = std::vector<Tensor>;
  auto pruned = keel::function("mlp_pruned", [](const Tensor& x, const Params& p) { Mlp::logits(x, p); });
  auto returned = keel::function("mlp_returned", Mlp::logits);
  Tensor x = keel::zeros({3, 784}) + 1.f;
  Params params = Mlp().params;
  pruned(x, params);
  EXPECT_EQ(returned(x, params).values<float>(), kLogits);
  auto needed = [](const keel::Module& m) {
    std::string report = keel::Session(m, GetParam()).prepare().report();
    size_t at = report.find("\"nodes\":");
    return report.substr(at, report.find(',', report.find(',', at) + 1) - at);
  };
  EXPECT_EQ(needed(pruned.concrete(x, params)), "\"nodes\":11,\"needed_nodes\":0");
  EXPECT_EQ(needed(returned.concrete(x, params)), "\"nodes\":11,\"needed_nodes\":11");
}

TEST_P(Rows, T21_BuildingHasACostOfItsOwn) {
  auto f = keel::function("mlp", Mlp::logits);
  Tensor x = keel::zeros({3, 784}) + 1.f;
  for (int i = 0; i < 3; i++) f(x, Mlp().params);
  EXPECT_EQ(f.trace_count(), 1);
  for (const char* part : {"\"trace_ms\":", "\"plan_ms\":", "\"calls\":3"})
    EXPECT_NE(f.report().find(part), std::string::npos) << f.report();
}

}  // namespace
