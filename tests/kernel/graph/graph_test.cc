// graph_test.cc: building graphs in code: names, types, attributes, limits, errors.

#include <atomic>
#include <thread>

#include "tests/kernel/graph/helpers.h"

namespace keel::test {
namespace {

struct GraphTest : ::testing::Test {
  Module m{Ops()};
  Graph* g = *m.AddGraph("main");
  const OpDef* Op(std::string_view name) { return *m.catalogue->Find(name, 0); }
};

TEST_F(GraphTest, BuildsAChain) {
  Dim b = *m.dims.Symbol("b");
  ValueId x = *g->AddParam("x", F32({b, 2}));
  NodeId n = *g->AddNode(Op("relu"), {x}, {}, {"y"});
  ValueId y = g->nodes[n].out[0];
  EXPECT_EQ(g->values[y].type, F32({b, 2}));
  EXPECT_TRUE(g->AddResult("out", y).ok());
  EXPECT_TRUE(m.AddEntry("main", g).ok());
  EXPECT_EQ(*g->Find("y"), y);
  EXPECT_EQ(*g->Find("out"), y);
  EXPECT_EQ((*m.FindEntry(""))->name, "main");
  EXPECT_TRUE(Verify(m).ok());
}

TEST_F(GraphTest, UnnamedResultsAreCalledAfterTheirNode) {
  ValueId x = *g->AddParam("x", F32({4}));
  Attrs sizes{ListAttr("sizes", KEEL_ATTR_I64S, {1, 3})};
  NodeId n = *g->AddNode(Op("split"), {x}, sizes);
  EXPECT_EQ(g->ValueName(g->nodes[n].out[0]), "v0");
  EXPECT_EQ(g->ValueName(g->nodes[n].out[1]), "v0_1");
  EXPECT_EQ(*g->Find("v0_1"), g->nodes[n].out[1]);
  EXPECT_FALSE(g->Find("v0_2").ok());
  EXPECT_FALSE(g->Find("v1").ok());
  EXPECT_TRUE(g->NameValue(g->nodes[n].out[0], "front").ok());
  EXPECT_FALSE(g->Find("v0").ok());
  EXPECT_EQ(*g->Find("front"), g->nodes[n].out[0]);
}

TEST_F(GraphTest, RefusesBadNames) {
  ASSERT_TRUE(g->AddParam("x", F32({})).ok());
  EXPECT_ERROR(g->AddParam("x", F32({})).status(), "already has a value 'x'");
  EXPECT_ERROR(g->AddParam("a\nb", F32({})).status(), "control byte 10");
  EXPECT_ERROR(g->AddParam("a\xff", F32({})).status(), "not UTF-8");
  EXPECT_TRUE(g->AddParam(std::string(1023, 'a'), F32({})).ok());
  EXPECT_TRUE(g->AddParam(std::string(1024, 'a'), F32({})).ok());
  EXPECT_ERROR(g->AddParam(std::string(1025, 'a'), F32({})).status(), "1025 bytes; the limit is 1024");
  EXPECT_ERROR(g->AddNode(Op("neg"), {0}, {}, {"x"}).status(), "already has a value 'x'");
  EXPECT_ERROR(m.AddGraph("main").status(), "already has a graph 'main'");
  EXPECT_ERROR(m.AddGraph("").status(), "empty");
}

TEST_F(GraphTest, RefusesBadTypes) {
  EXPECT_TRUE(g->AddParam("r8", F32({1, 1, 1, 1, 1, 1, 1, 1})).ok());
  EXPECT_ERROR(g->AddParam("r9", F32({1, 1, 1, 1, 1, 1, 1, 1, 1})).status(), "rank 9; the limit is 8");
  EXPECT_ERROR(g->AddParam("minus", F32({-1})).status(), "from 0 to");
  EXPECT_TRUE(g->AddParam("large", F32({int64_t{1} << 38})).ok());
  EXPECT_ERROR(g->AddParam("larger", F32({int64_t{1} << 39})).status(), "limit of one tensor");
  EXPECT_ERROR(g->AddParam("over", F32({kMaxDim, kMaxDim, kMaxDim})).status(), "limit of one tensor");
  EXPECT_TRUE(g->AddParam("none of many", F32({kMaxDim, kMaxDim, 0})).ok());
  EXPECT_ERROR(g->AddParam("none", TensorType()).status(), "no dtype");
}

TEST_F(GraphTest, RefusesBadOperandsAndNamesTheNode) {
  ValueId x = *g->AddParam("x", F32({2}));
  ValueId y = *g->AddParam("y", F32({3}));
  auto s = g->AddNode(Op("add"), {x, y}, {}, {"sum"}).status();
  EXPECT_ERROR(s, "node 'sum'");
  EXPECT_EQ(ErrorFact(s, kErrorNode), "sum");
  EXPECT_EQ(ErrorFact(s, kErrorOp), "add");
  EXPECT_ERROR(g->AddNode(Op("add"), {x, 99}, {}).status(), "value 99");
  EXPECT_FALSE(g->AddNode(Op("add"), {x}, {}).ok());
  EXPECT_FALSE(g->AddNode(Op("add"), {x, x, x}, {}).ok());
  EXPECT_FALSE(g->AddNode(Op("add"), {x, kNoValue}, {}).ok());
  EXPECT_ERROR(g->AddNode(Op("neg"), {x}, {}, {"a", "b"}).status(), "1 results but got 2 names");
  EXPECT_TRUE(g->nodes.empty());
  EXPECT_EQ(g->values.size(), 2u);
}

TEST_F(GraphTest, AttributesAreBroughtIntoOneForm) {
  ValueId x = *g->AddParam("x", F32({2, 3}));
  Attrs attrs{BoolAttr("keep", false), ListAttr("axes", KEEL_ATTR_DIMS, {1})};
  NodeId n = *g->AddNode(Op("reduce_sum"), {x}, attrs);
  ASSERT_EQ(g->nodes[n].attrs.size(), 1u);  // keep=false is the default
  EXPECT_EQ(g->nodes[n].attrs[0].name, "axes");
  EXPECT_EQ(g->nodes[n].attrs[0].value.kind, KEEL_ATTR_I64S);
  EXPECT_ERROR(g->AddNode(Op("neg"), {x}, attrs).status(), "has no attribute 'axes'");
  Attrs twice{BoolAttr("keep", true), BoolAttr("keep", true)};
  EXPECT_ERROR(g->AddNode(Op("reduce_sum"), {x}, twice).status(), "twice");
  Attrs kind{ListAttr("keep", KEEL_ATTR_STR, {})};
  EXPECT_ERROR(g->AddNode(Op("reduce_sum"), {x}, kind).status(), "is a bool, got a string");
  EXPECT_ERROR(g->AddNode(Op("reshape"), {x}, {}).status(), "to");
}

TEST_F(GraphTest, DeclaredTypesMayBeMoreSpecific) {
  Dim b = *m.dims.Symbol("b");
  ValueId x = *g->AddParam("x", F32({b, 2}));
  NodeId n = *g->AddNode(Op("neg"), {x}, {}, {}, {F32({8, 2})});
  EXPECT_EQ(g->values[g->nodes[n].out[0]].type, F32({8, 2}));
  EXPECT_ERROR(g->AddNode(Op("neg"), {x}, {}, {}, {F32({b, 3})}).status(), "was declared as f32[b, 3]");
  EXPECT_ERROR(g->AddNode(Op("neg"), {x}, {}, {}, {F32({})}).status(), "declared");
  EXPECT_ERROR(g->AddNode(Op("neg"), {x}, {}, {}, {F32({}), F32({})}).status(), "2 types are declared");
}

TEST_F(GraphTest, ConstantsAndLiterals) {
  alignas(64) static const float data[4] = {1, 2, 3, 4};
  Constant c{"w", F32({2, 2}), data, sizeof data, nullptr};
  uint32_t w = *m.AddConstant(c);
  EXPECT_ERROR(m.AddConstant(c).status(), "already has a constant 'w'");
  c.name = "";
  EXPECT_EQ(m.constants[*m.AddConstant(c)].name, "c0");
  c.name = "short";
  c.bytes = 12;
  EXPECT_ERROR(m.AddConstant(c).status(), "takes 16 bytes but has 12");
  c.data = reinterpret_cast<const char*>(data) + 2;
  c.type = F32({3});
  EXPECT_ERROR(m.AddConstant(c).status(), "not aligned");
  EXPECT_EQ(*g->AddConstant(w), *g->AddConstant(w));
  float one = 1;
  EXPECT_EQ(*g->AddScalar(DType::kF32, &one), *g->AddScalar(DType::kF32, &one));
  EXPECT_ERROR(g->AddConstant(77).status(), "no constant 77");
  EXPECT_ERROR(g->AddParam("w", F32({})).status(), "already");
}

TEST_F(GraphTest, FindSuggestsCloseNames) {
  ASSERT_TRUE(g->AddParam("logits", F32({})).ok());
  EXPECT_ERROR(g->Find("logit").status(), "'logits'");
  EXPECT_ERROR(m.FindEntry("").status(), "it has none");
}

TEST_F(GraphTest, CasesMustFit) {
  ASSERT_TRUE(g->AddParam("x", F32({2})).ok());
  ASSERT_TRUE(g->AddResult("y", 0).ok());
  ASSERT_TRUE(m.AddEntry("main", g).ok());
  alignas(64) static const float data[3] = {1, 2, 3};
  uint32_t good = *m.AddConstant({"two", F32({2}), data, 8, nullptr});
  uint32_t bad = *m.AddConstant({"three", F32({3}), data, 12, nullptr});
  EXPECT_TRUE(m.AddCase({"a", "main", {good}, {good}, 0, 0}).ok());
  EXPECT_ERROR(m.AddCase({"a", "main", {good}, {good}, 0, 0}), "already");
  EXPECT_ERROR(m.AddCase({"b", "main", {bad}, {good}, 0, 0}), "f32[3]; expected f32[2]");
  EXPECT_ERROR(m.AddCase({"b", "main", {}, {good}, 0, 0}), "0 given");
  EXPECT_ERROR(m.AddCase({"b", "other", {good}, {good}, 0, 0}), "no entry 'other'");
  EXPECT_ERROR(m.AddCase({"b", "main", {good}, {good}, -1, 0}), "negative");
}

TEST_F(GraphTest, ManyThreadsVerifyOneModule) {
  Dim b = *m.dims.Symbol("b"), c = *m.dims.Symbol("c");
  ValueId x = *g->AddParam("x", F32({b})), y = *g->AddParam("y", F32({c}));
  Attrs axis{{"axis", {KEEL_ATTR_I64, 0, 0, "", {}, {}}}};
  ASSERT_TRUE(g->AddNode(Op("concat"), {x, y}, axis, {"a"}, {F32({*m.dims.Symbol("d")})}).ok());
  ASSERT_TRUE(g->AddNode(Op("concat"), {x, 2}, axis, {"e"}, {F32({*m.dims.Symbol("f")})}).ok());
  std::vector<std::thread> threads;
  std::atomic<int> fine = 0;
  for (int t = 0; t < 9; t++) threads.emplace_back([&] { fine += Verify(m).ok(); });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(fine, 9);
}

TEST_F(GraphTest, VerifyFindsWhatWasEditedWrongly) {
  ValueId x = *g->AddParam("x", F32({2}));
  ASSERT_TRUE(g->AddNode(Op("neg"), {x}, {}, {"a"}).ok());
  ASSERT_TRUE(g->AddNode(Op("neg"), {1}, {}, {"b"}).ok());
  ASSERT_TRUE(Verify(m).ok());
  g->nodes[0].in[0] = 2;
  EXPECT_ERROR(Verify(m), "not earlier");
  g->nodes[0].in[0] = 50;
  EXPECT_ERROR(Verify(m), "does not exist");
  g->nodes[0].in[0] = x;
  g->values[1].type = F32({3});
  EXPECT_ERROR(Verify(m), "declared as f32[3]");
  g->values[1].type = F32({2});
  g->values[1].name = "b";
  EXPECT_ERROR(Verify(m), "lacks 'b'");
  g->values[1].name = "a";
  g->nodes[0].attrs.push_back({"nonsense", {}});
  EXPECT_ERROR(Verify(m), "nonsense");
}

}  // namespace
}  // namespace keel::test
