// plan_test.cc: planning: pruning, feeding any value, one plan for all sizes, memory reuse, constant folding,
// runs from many threads, errors that name their cause. Oracles are literals.
#include "kernel/runtime/plan/plan.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "kernel/language/graph/graph.h"
#include "kernel/language/values/array.h"
#include "kernel/runtime/plugin/registry.h"

namespace keel {
namespace {

class PlanTest : public testing::Test {
 protected:
  PlanTest() : registry_(std::make_shared<Catalogue>(), nullptr) {
    absl::Status loaded = registry_.LoadFile(KEEL_TEST_PLUGINS "/keel-reference.so", "");
    EXPECT_TRUE(loaded.ok()) << loaded;
    device_ = *registry_.FindDevice("reference");
  }

  void Parse(const std::string& body) {
    auto module = ParseText("keel 1 opset core 1\n\n" + body, registry_.catalogue());
    ASSERT_TRUE(module.ok()) << module.status();
    module_ = *std::move(module);
    graph_ = module_->graphs[0].get();
  }

  absl::StatusOr<std::shared_ptr<Plan>> Make(std::vector<std::string> feeds,
                                             std::vector<std::string> fetches) {
    std::vector<ValueId> in, out;
    for (const auto& name : feeds) in.push_back(*graph_->Find(name));
    for (const auto& name : fetches) out.push_back(*graph_->Find(name));
    return Plan::Make({graph_, device_, in, out, {}}, options_);
  }

  static ArrayRef Floats(std::vector<int64_t> shape, std::vector<float> values) {
    ArrayRef a = *NewArray(DType::kF32, shape, true);
    std::copy(values.begin(), values.end(), reinterpret_cast<float*>(a->data()));
    return a;
  }

  static std::vector<float> Values(const ArrayRef& a) {
    auto* p = reinterpret_cast<const float*>(a->data());
    return {p, p + a->count};
  }

  static absl::StatusOr<std::vector<float>> Run(Plan& plan, std::vector<ArrayRef> in) {
    std::vector<keel_array*> raw;
    for (ArrayRef& a : in) raw.push_back(a.get());
    std::vector<ArrayRef> out(plan.outputs());
    absl::Status status = plan.Run(raw, out);
    if (!status.ok()) return status;
    return Values(out[0]);
  }

  Registry registry_;
  Device* device_;
  std::unique_ptr<Module> module_;
  Graph* graph_ = nullptr;
  PlanOptions options_;
};

TEST_F(PlanTest, OnePlanServesEverySize) {
  Parse("fn @main(x: f32[b, 2]) -> f32[b] {\n  y = reduce_sum(mul(x, x)){axes=[1]}\n  return y\n}\n");
  auto plan = Make({"x"}, {"y"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(*Run(**plan, {Floats({2, 2}, {1, 2, 3, 4})}), (std::vector<float>{5, 25}));
  EXPECT_EQ(*Run(**plan, {Floats({1, 2}, {2, 2})}), (std::vector<float>{8}));
  EXPECT_EQ(*Run(**plan, {Floats({0, 2}, {})}), (std::vector<float>{}));
  auto wrong = Run(**plan, {Floats({2, 3}, {1, 2, 3, 4, 5, 6})});
  EXPECT_EQ(wrong.status().message(),
            "Cannot feed value of shape [2, 3] for \"x\", which is f32[b, 2]: dim 1 is 3, not 2");
}

TEST_F(PlanTest, FeedingAValueCutsTheGraphThere) {
  Parse("fn @main(x: f32[2]) -> f32[2] {\n  h = div(x, 0)\n  y = add(h, 1)\n  return y\n}\n");
  auto plan = Make({"h"}, {"y"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(*Run(**plan, {Floats({2}, {5, 6})}), (std::vector<float>{6, 7}));
  auto missing = Make({}, {"y"});
  EXPECT_EQ(missing.status().message(), "You must feed a value for parameter \"x\", which is f32[2]");
}

TEST_F(PlanTest, ChainsReuseMemoryAndConstantsAreFolded) {
  std::string text =
      "fn @main(x: f32[1000]) -> f32[1000] {\n  k = exp(fill(0.0){dims=[1000]})\n  h0 = mul(x, k)\n";
  for (int i = 1; i < 50; i++)
    text += "  h" + std::to_string(i) + " = transpose(add(h" + std::to_string(i - 1) + ", k))\n";
  Parse(text + "  y = add(h49, h49)\n  return y\n}\n");
  auto plan = Make({"x"}, {"y"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::string report = *(*plan)->Report({});
  EXPECT_NE(report.find("\"folded\":["), std::string::npos);
  EXPECT_EQ(*Run(**plan, {Floats({1000}, std::vector<float>(1000, 2))}), std::vector<float>(1000, 102));
  auto arena = report.find("\"arena_bytes\":");
  ASSERT_NE(arena, std::string::npos);
  EXPECT_LE(std::stoll(report.substr(arena + 14)), 2 * 4096);
}

// A carried value and an entry change; a captured constant does not, so bodies fold what they compute from
// it.
TEST_F(PlanTest, BodiesFoldCapturedConstants) {
  Parse(
      "const k: f32[2] = [1.0, 2.0]\nfn @main(x: f32[2], n: i32[], s: f32[3, 2], p: bool[]) -> f32[2] {\n"
      "  a, i = while(x, 0, n, reshape(k){to=[2, 1]}){carry=2}\n"
      "    test(a, i, n, k) { t = less(i, n)\n      yield t }\n"
      "    body(a, i, n, k) { in_while = neg(reshape(k){to=[2]})\n      b = mul(a, in_while)\n"
      "      j = add(i, 1)\n      yield b, j }\n"
      "  c, all = scan(k, k, s){carry=1, invariants=1}\n"
      "    body(c, k, e) { in_scan = exp(sub(k, k))\n      d = add(mul(c, in_scan), e)\n      yield d, k }\n"
      "  y = cond(p, a, c, k)\n"
      "    then(a, c, k) { in_then = add(k, k)\n      v = add(add(a, c), in_then)\n      yield v }\n"
      "    else(a, c, k) { yield k }\n"
      "  z = reduce_sum(all){axes=[0]}\n  r = add(y, z)\n  return r\n}\n");
  auto plan = Make({"x", "n", "s", "p"}, {"r"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::string report = *(*plan)->Report({}), folded = report.substr(report.find("\"folded\":["));
  for (const char* node : {"in_while", "in_scan", "in_then"})
    EXPECT_NE(folded.find(node), std::string::npos) << folded;
  for (const char* node : {"/b\"", "/d\"", "/v\""}) EXPECT_EQ(folded.find(node), std::string::npos) << folded;
  for (const bool yes : {true, false}) {
    ArrayRef n = *NewArray(DType::kI32, {}, true), p = *NewArray(DType::kBool, {}, true);
    *reinterpret_cast<int32_t*>(n->data()) = 3;
    *reinterpret_cast<bool*>(p->data()) = yes;
    auto got = Run(**plan, {Floats({2}, {3, 5}), n, Floats({3, 2}, {1, 2, 3, 4, 5, 6}), p});
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(*got,
              yes ? (std::vector<float>{-3 + 10 + 2 + 3, -40 + 14 + 4 + 6}) : (std::vector<float>{4, 8}));
  }
}

TEST_F(PlanTest, ManyThreadsRunOnePlan) {
  Parse("fn @main(x: f32[n]) -> f32[n] {\n  y = tanh(mul(add(x, 1), x))\n  return y\n}\n");
  auto plan = Make({"x"}, {"y"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 9; t++)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; i++) {
        int64_t n = 1 + (t + i) % 5;
        float v = static_cast<float>(t) / 8, want = std::tanh((v + 1) * v);
        auto got = Run(**plan, {Floats({n}, std::vector<float>(static_cast<size_t>(n), v))});
        if (!got.ok() || got->size() != static_cast<size_t>(n)) wrong++;
        if (got.ok())
          for (float g : *got) wrong += std::abs(g - want) > 1e-6;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(PlanTest, FetchedFeedsConstantsAndViewsAreCopies) {
  Parse(
      "fn @main(x: f32[2, 2]) -> f32[4] {\n  y = reshape(x){to=[4]}\n  z = add(x, 1)\n  w = "
      "reshape(z){to=[-1]}\n  return y\n}\n");
  auto plan = Make({"x"}, {"w", "z", "y"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ArrayRef x = Floats({2, 2}, {1, 2, 3, 4});
  keel_array* in[] = {x.get()};
  std::vector<ArrayRef> out(3);
  ASSERT_TRUE((*plan)->Run(in, out).ok());
  EXPECT_EQ(Values(out[0]), (std::vector<float>{2, 3, 4, 5}));
  EXPECT_EQ(Values(out[1]), (std::vector<float>{2, 3, 4, 5}));
  EXPECT_EQ(Values(out[2]), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_NE(out[2]->data(), x->data());
}

TEST_F(PlanTest, ErrorsNameNodeOpAndSizes) {
  Parse("fn @main(x: i32[n], i: i32[]) -> i32[n] {\n  q = div(x, i)\n  return q\n}\n");
  auto plan = Make({"x", "i"}, {"q"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ArrayRef x = *NewArray(DType::kI32, std::vector<int64_t>{3}, true), zero = *NewArray(DType::kI32, {}, true);
  auto got = Run(**plan, {x, zero});
  EXPECT_EQ(got.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(ErrorFact(got.status(), kErrorNode), "q");
  EXPECT_EQ(ErrorFact(got.status(), kErrorOp), "div");
  EXPECT_EQ(ErrorFact(got.status(), kErrorPlugin), "reference");
  EXPECT_NE(got.status().message().find("division by zero"), std::string::npos) << got.status();
}

TEST_F(PlanTest, RunsWithinTheMemoryLimit) {
  Parse("fn @main(x: f32[n]) -> f32[n] {\n  y = add(exp(x), x)\n  return y\n}\n");
  options_.memory = 1000;
  auto plan = Make({"x"}, {"y"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(Run(**plan, {Floats({10}, std::vector<float>(10))}).ok());
  auto big = Run(**plan, {Floats({1000}, std::vector<float>(1000))});
  EXPECT_EQ(big.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(big.status().message().find("the limit is 1000"), std::string::npos) << big.status();
}

}  // namespace
}  // namespace keel
