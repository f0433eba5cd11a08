// gradient_test.cc: the nodes that a gradient appends: only the requested gradients, zeros only where a rule
// reads them, no identity nodes; an error leaves the graph unchanged.

#include "kernel/program/grad/gradient.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "tests/kernel/graph/helpers.h"

namespace keel::test {
namespace {

// A graph of one function; returns the lines that the gradient appends.
struct GradientTest : ::testing::Test {
  std::unique_ptr<Module> m;
  Graph* g = nullptr;

  void Parse(std::string_view params, std::string_view body, std::string_view result) {
    auto parsed = ParseText(
        absl::StrCat("keel 1\nfn @main(", params, ") {\n", body, "\n return ", result, "\n}\n"), Ops());
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    m = *std::move(parsed);
    g = m->graphs[0].get();
  }
  absl::StatusOr<std::vector<ValueId>> Run(const std::vector<const char*>& ys,
                                           const std::vector<const char*>& xs, bool zeros = false) {
    std::vector<ValueId> y, x;
    for (const char* name : ys) y.push_back(*g->Find(name));
    for (const char* name : xs) x.push_back(*g->Find(name));
    return Gradient(*g, {y, {}, x, zeros});
  }
  std::vector<std::string> Appended(const std::vector<const char*>& ys, const std::vector<const char*>& xs) {
    size_t before = g->nodes.size();
    auto found = Run(ys, xs);
    EXPECT_TRUE(found.ok()) << found.status();
    std::vector<std::string> lines;
    for (size_t n = before; n < g->nodes.size(); n++) {
      lines.push_back(PrintNode(*g, static_cast<NodeId>(n)));
      absl::StripAsciiWhitespace(&lines.back());
    }
    return lines;
  }
};
using Lines = std::vector<std::string>;

TEST_F(GradientTest, ARuleWritesOnlyWhatIsWanted) {
  Parse("a: f32[2, 3], b: f32[3, 4], s: f32[2, 4]", "c = matmul(a, b)\n y = c * s", "y");
  EXPECT_EQ(Appended({"y"}, {"b"}),
            (Lines{"v2 = fill(f32(1.0)){dims=[2, 4]} : f32[2, 4]",  //
                   "v3 = mul(v2, s) : f32[2, 4]", "v4 = matmul(a, v3){ta=true} : f32[3, 4]"}));
}

TEST_F(GradientTest, ABroadcastIsSummedAndNothingElse) {
  Parse("a: f32[2, 3], b: f32[3]", "y = a + b", "y");
  EXPECT_EQ(Appended({"y"}, {"a", "b"}),
            (Lines{"v1 = fill(f32(1.0)){dims=[2, 3]} : f32[2, 3]", "v2 = sum_to(v1){dims=[3]} : f32[3]"}));
}

TEST_F(GradientTest, ZerosStandOnlyForPartsThatARuleReads) {
  Parse("x: f32[4], v: f32[]", "a, b = split(x){sizes=[1, 3]}\n y = reduce_sum(b)", "y");
  Lines split = Appended({"y"}, {"x"});
  ASSERT_EQ(split.size(), 4u);
  EXPECT_EQ(split[2], "v4 = fill(f32(0.0)){dims=[1]} : f32[1]");
  Parse("x: f32[4]", "v, i = top_k(x){k=2}\n y = reduce_sum(v)", "y");
  for (const std::string& line : Appended({"y"}, {"x"}))
    EXPECT_EQ(line.find("fill(0"), std::string::npos) << line;
}

TEST_F(GradientTest, WhatArrivesTwiceIsAdded) {
  Parse("x: f32[]", "y = x * x", "y");
  EXPECT_EQ(Appended({"y"}, {"x"}), (Lines{"v1 = mul(1.0, x) : f32[]", "v2 = mul(1.0, x) : f32[]",  //
                                           "v3 = add(v1, v2) : f32[]"}));
}

TEST_F(GradientTest, SymbolsKeepTheirNames) {
  Parse("x: f32[b, n], w: f32[n]", "y = reduce_mean(x * w){axes=[1]}", "y");
  auto found = Run({"y"}, {"x", "w"});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(Print(g->values[(*found)[0]].type, m->dims), "f32[b, n]");
  EXPECT_EQ(Print(g->values[(*found)[1]].type, m->dims), "f32[n]");
}

TEST_F(GradientTest, NothingIsAppendedWhereNothingDepends) {
  Parse("x: f32[2], z: f32[3]", "s = stop_gradient(x)\n y = exp(s)", "y");
  size_t nodes = g->nodes.size();
  EXPECT_EQ(*Run({"y"}, {"x", "z"}), (std::vector<ValueId>{kNoValue, kNoValue}));
  EXPECT_EQ(g->nodes.size(), nodes);
  auto zeros = Run({"y"}, {"z"}, true);
  EXPECT_EQ(g->values[(*zeros)[0]].type, F32({3}));
}

TEST_F(GradientTest, AnErrorLeavesTheGraphAsItWas) {
  auto ops = std::make_shared<Catalogue>();
  ASSERT_TRUE(ops->AddText("opset t 1\nop t.f since 1 in x: T[P..] out y: T[P..] type T: float\n", "t").ok());
  auto parsed = ParseText(
      "keel 1\nfn @main(x: f32[2]) {\n a = exp(x)\n b = t.f(a)\n y = sin(b) * 7\n return y\n}\n", ops);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  m = *std::move(parsed);
  g = m->graphs[0].get();
  std::string before = PrintText(*m);
  size_t values = g->values.size(), constants = g->constant_values.size();
  absl::Status status = Run({"y"}, {"x"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_EQ(PrintText(*m), before);
  EXPECT_EQ(g->values.size(), values);
  EXPECT_EQ(g->constant_values.size(), constants);
  EXPECT_TRUE(Verify(*m).ok());
  EXPECT_TRUE(Run({"y"}, {"b"}).ok());  // the op is not on a path from x to y
}

}  // namespace
}  // namespace keel::test
