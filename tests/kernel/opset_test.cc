// opset_test.cc: the op catalogue: inference against literal results, and its error messages.

#include <limits>

#include "gtest/gtest.h"
#include "tests/kernel/opset_helpers.h"

namespace keel {
namespace {

TEST_F(Opset, EveryOpParsesAndItsRulesResolve) {
  EXPECT_EQ(catalogue.ParseAll(), absl::OkStatus());
  EXPECT_GT(catalogue.Names().size(), 90u);
}

TEST_F(Opset, Elementwise) {
  EXPECT_EQ(Infer("add", {"f32[2, 3]", "f32[3]"}), "f32[2, 3]");
  EXPECT_EQ(Infer("add", {"i64[4, 1]", "i64[1, 5]"}), "i64[4, 5]");
  EXPECT_EQ(Infer("less", {"f16[0]", "f16[1]"}), "bool[0]");
  EXPECT_EQ(Infer("select", {"bool[2, 1]", "f32[3]", "f32[]"}), "f32[2, 3]");
  EXPECT_EQ(Infer("relu", {"bf16[7]"}), "bf16[7]");
  EXPECT_EQ(Infer("atan2", {"f32[2, 1]", "f32[3]"}), "f32[2, 3]");
  EXPECT_EQ(Infer("cast", {"f32[2]"}, {T("to", DType::kBool)}), "bool[2]");
  EXPECT_EQ(Infer("cast", {"i4[2]"}, {T("to", DType::kF8E5M2)}), "f8e5m2[2]");
  EXPECT_EQ(Infer("bit_cast", {"f32[2, 3]"}, {T("to", DType::kU32)}), "u32[2, 3]");
  EXPECT_EQ(Infer("bit_cast", {"u4[3]"}, {T("to", DType::kI4)}), "i4[3]");
  EXPECT_EQ(Infer("bit_cast", {"bool[2]"}, {T("to", DType::kU8)}), "u8[2]");
  EXPECT_EQ(Infer("reshape", {"u2[6]"}, {L("to", {2, 3})}), "u2[2, 3]");
  EXPECT_EQ(Infer("clamp", {"f32[2]", "1", "1.0"}), "f32[2]");
}

TEST_F(Opset, LiteralsTakeTheirPartnersDtype) {
  EXPECT_EQ(Infer("add", {"f64[2]", "1"}), "f64[2]");
  EXPECT_EQ(inferred.operand_dtypes, (std::vector<DType>{DType::kF64, DType::kF64}));
  EXPECT_EQ(Infer("add", {"1", "1"}), "i32[]");
  EXPECT_EQ(Infer("add", {"1", "1.0"}), "f32[]");
  EXPECT_EQ(Infer("exp", {"1"}), "f32[]");
  EXPECT_EQ(Infer("add", {"i32[2]", "1.0"}),
            "add: b is a float literal but i32 is expected: a is i32[2], b is a float literal");
}

TEST_F(Opset, Linear) {
  EXPECT_EQ(Infer("matmul", {"f32[2, 4]", "f32[4, 5]"}), "f32[2, 5]");
  EXPECT_EQ(Infer("matmul", {"f32[7, 1, 4, 2]", "f32[6, 5, 4]"}, {B("ta", true), B("tb", true)}),
            "f32[7, 6, 2, 5]");
  EXPECT_EQ(Infer("conv", {"f32[1, 3, 224, 224]", "f32[64, 3, 7, 7]"},
                  {L("hi", {3, 3}), I("lo", 3), I("stride", 2)}),
            "f32[1, 64, 112, 112]");
  EXPECT_EQ(Infer("conv", {"f32[1, 4, 9]", "f32[6, 2, 3]"}, {I("groups", 2)}), "f32[1, 6, 7]");
  EXPECT_EQ(Got("stride").list, (std::vector<int64_t>{1}));
  EXPECT_EQ(Infer("max_pool", {"f32[1, 8, 112, 112]"},
                  {I("hi", 1), I("lo", 1), I("stride", 2), L("window", {3, 3})}),
            "f32[1, 8, 56, 56]");
  EXPECT_EQ(Infer("conv_grad_x", {"f32[1, 6, 7]", "f32[6, 2, 3]"}, {L("dims", {1, 4, 9}), I("groups", 2)}),
            "f32[1, 4, 9]");
  EXPECT_EQ(Infer("avg_pool", {"f32[1, 8, 5]"}, {I("over", 1), I("stride", 2), L("window", {2})}),
            "f32[1, 8, 3]");
}

TEST_F(Opset, LinearAlgebra) {
  for (const char* op : {"cholesky", "inv"}) EXPECT_EQ(Infer(op, {"f32[b, n, n]"}), "f32[b, n, n]");
  EXPECT_EQ(Infer("triangular_solve", {"f16[b, 3, 3]", "f16[b, 3, k]"}, {B("lower", false)}), "f16[b, 3, k]");
  EXPECT_EQ(Infer("solve", {"f64[n, n]", "f64[n, 1]"}), "f64[n, 1]");
  EXPECT_EQ(Infer("det", {"bf16[2, 3, 3]"}), "bf16[2]");
  EXPECT_EQ(Infer("qr", {"f32[b, 2, 5]"}), "f32[b, 2, 2], f32[b, 2, 5]");
  EXPECT_EQ(Infer("svd", {"f32[7, 5]"}), "f32[7, 5], f32[5], f32[5, 5]");
  EXPECT_EQ(Infer("svd", {"f32[r, s]"}), "f32[r, min(r, s)], f32[min(r, s)], f32[min(r, s), s]");
  EXPECT_EQ(Infer("eigh", {"f32[b, n, n]"}), "f32[b, n], f32[b, n, n]");
}

TEST_F(Opset, Reductions) {
  EXPECT_EQ(Infer("reduce_sum", {"f32[2, 3, 4]"}), "f32[]");
  EXPECT_EQ(Infer("reduce_sum", {"f32[2, 3, 4]"}, {L("axes", {-1, 0})}), "f32[3]");
  EXPECT_EQ(Got("axes").list, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(Infer("reduce_max", {"f32[2, 3, 4]"}, {L("axes", {1}), B("keep", true)}), "f32[2, 1, 4]");
  EXPECT_EQ(Infer("reduce_mean", {"f32[2, 3]"}, {L("axes", {})}), "f32[2, 3]");
  EXPECT_EQ(Infer("arg_max", {"f32[2, 3]"}, {I("axis", -1)}), "i64[2]");
  EXPECT_EQ(Got("axis").i, 1);
  EXPECT_EQ(Infer("top_k", {"f32[2, 3]"}, {I("k", 2)}), "f32[2, 2], i64[2, 2]");
  EXPECT_EQ(Infer("unique", {"f16[n]"}, {I("size", 5)}), "f16[5], i64[5], i64[n], i64[5]");
  EXPECT_EQ(Infer("non_max_suppression", {"f32[2, 9, 4]", "f32[2, 3, 9]", "i64[]", "f32[]", "f32[]"},
                  {I("size", 5)}),
            "i64[30, 3], i64[]");
  EXPECT_EQ(Infer("non_max_suppression", {"f32[2, 9, 4]", "f32[2, 3, 9]", "i32[]", "f32[]", "f32[]"},
                  {I("size", 9)}),
            "i64[54, 3], i64[]");
  std::vector<const char*> trees = {"f32[n, 4]", "f32[9]", "i32[9]", "i32[9]",
                                    "i32[9, 2]", "i32[3]", "i32[3]", "f32[12, 2]"};
  EXPECT_EQ(Infer("tree_ensemble", trees, {I("size", 2)}), "f32[n, 2]");
  EXPECT_EQ(Infer("tree_ensemble", trees, {I("size", 5), S("mode", "max")}), "f32[n, 5]");
  EXPECT_EQ(Infer("reduce_var", {"f32[2, 3]"}, {L("axes", {0}), F("ddof", 1)}), "f32[3]");
  EXPECT_EQ(Infer("reduce_std", {"f16[2, 3]"}, {B("keep", true)}), "f16[1, 1]");
  EXPECT_EQ(Infer("sort", {"u8[2, 3]"}, {I("axis", 0)}), "u8[2, 3], i64[2, 3]");
  EXPECT_EQ(Infer("argsort", {"f32[2, 3]"}), "i64[2, 3]");
  EXPECT_EQ(Infer("cumsum", {"i32[2, 3]"}, {I("axis", 1)}), "i32[2, 3]");
  EXPECT_EQ(Infer("cumprod", {"i32[2, 3]"}, {I("axis", 1)}), "i32[2, 3]");
  EXPECT_EQ(Infer("linear_recurrence", {"f16[n, 3]", "f16[n, 3]"}), "f16[n, 3]");
}

TEST_F(Opset, Transforms) {
  EXPECT_EQ(Infer("dft", {"f32[n, 1]"}), "f32[n, 2]");
  EXPECT_EQ(Infer("dft", {"f32[3, 7, 4, 1]"}, {I("axis", 1), B("onesided", true)}), "f32[3, 4, 4, 2]");
  EXPECT_EQ(Infer("dft", {"f16[3, 5, 2]"}, {B("inverse", true), B("onesided", true)}), "f16[3, 8, 1]");
  EXPECT_EQ(Infer("dft", {"f64[3, 5, 2]"}, {B("inverse", true), I("length", 6)}), "f64[3, 6, 2]");
}

TEST_F(Opset, SumsOfProductsByLabels) {
  const auto infer = [&](std::vector<const char*> in, std::vector<int64_t> x, std::vector<int64_t> y,
                         std::vector<int64_t> to) {
    return Infer("einsum", in, {L("to", std::move(to)), L("x", std::move(x)), L("y", std::move(y))});
  };
  EXPECT_EQ(infer({"f32[m, 3]", "f32[3, n]"}, {0, 1}, {1, 2}, {2, 0}), "f32[n, m]");
  EXPECT_EQ(infer({"i8[2, 3]", "i8[2, 3]"}, {7, -1}, {7, -1}, {}), "i8[]");
  EXPECT_EQ(infer({"f64[]", "f64[4]"}, {}, {0}, {0}), "f64[4]");
  EXPECT_EQ(infer({"f32[2, 3]", "f32[4, 2]"}, {0, 1}, {1, 2}, {0}),
            "einsum: [2, 3] labelled [0, 1] and [4, 2] labelled [1, 2] differ in the size of a label: a is "
            "f32[2, 3], b is f32[4, 2]");
  EXPECT_EQ(infer({"f32[2, 2]", "f32[2]"}, {0, 0}, {1}, {0}),
            "einsum: a label repeats in x [0, 0], y [1] or to [0]: a is f32[2, 2], b is f32[2]");
  EXPECT_EQ(infer({"f32[2]", "f32[2]"}, {0}, {1}, {1, 2}),
            "einsum: to [1, 2] has a label that neither x [0] nor y [1] has: a is f32[2], b is f32[2]");
  EXPECT_EQ(infer({"f32[2]", "f32[2]"}, {0, 1}, {1}, {1}),
            "einsum: attribute x has 2 entries but P has 1 dims: a is f32[2], b is f32[2]");
}

TEST_F(Opset, Shapes) {
  EXPECT_EQ(Infer("fill", {"f32[]"}, {L("dims", {2, 3})}), "f32[2, 3]");
  EXPECT_EQ(Infer("iota", {}, {I("axis", 1), L("dims", {2, 3})}), "i64[2, 3]");
  EXPECT_EQ(Infer("reshape", {"f32[2, 6]"}, {L("to", {3, -1})}), "f32[3, 4]");
  EXPECT_EQ(Infer("broadcast_to", {"f32[3]"}, {L("dims", {2, 3})}), "f32[2, 3]");
  EXPECT_EQ(Infer("sum_to", {"f32[2, 3]"}, {L("dims", {3})}), "f32[3]");
  EXPECT_EQ(Infer("transpose", {"f32[2, 3, 4]"}), "f32[4, 3, 2]");
  EXPECT_EQ(Infer("transpose", {"f32[2, 3, 4]"}, {L("perm", {0, -1, 1})}), "f32[2, 4, 3]");
  EXPECT_EQ(Infer("concat", {"f32[2, 3]", "f32[2, 4]", "f32[2, 0]"}, {I("axis", -1)}), "f32[2, 7]");
  EXPECT_EQ(Infer("split", {"f32[2, 7]"}, {I("axis", 1), L("sizes", {3, 4})}), "f32[2, 3], f32[2, 4]");
  EXPECT_EQ(Infer("slice", {"f32[5, 6]"}, {I("start", 1), L("step", {1, 2}), L("stop", {4, 6})}),
            "f32[3, 3]");
  EXPECT_EQ(Infer("slice_index", {"i32[2]"}, {L("dims", {2, 3}), L("of", {5, 6})}), "i64[2, 3]");
  EXPECT_EQ(Infer("dynamic_slice", {"u8[5, n]", "i64[2]"}, {L("dims", {2, 1})}), "u8[2, 1]");
  EXPECT_EQ(Infer("dynamic_update_slice", {"f32[5, n]", "f32[1, n]", "i32[2]"}), "f32[5, n]");
  EXPECT_EQ(Infer("pad", {"f32[3]", "1"}, {I("gap", 1), I("hi", 2), I("lo", 1)}), "f32[8]");
  EXPECT_EQ(Infer("trim", {"f32[n, 2]", "i32[]"}, {I("size", 5)}), "f32[5, 2]");
  EXPECT_EQ(Infer("nonzero", {"bool[n]"}, {I("size", 5)}), "i64[1, 5]");
  EXPECT_EQ(Infer("nonzero", {"bf16[2, n, 3]"}, {I("size", 5)}), "i64[3, 5]");
  EXPECT_EQ(Infer("nonzero", {"f32[]"}), "nonzero: x has no dims; reshape it to [1]: x is f32[]");
  EXPECT_EQ(Infer("tile", {"f32[3, 1]"}, {L("times", {2, 4})}), "f32[6, 4]");
  EXPECT_EQ(Infer("gather", {"f32[2, 3, 4]", "i32[7, 8]"}, {I("axis", 1)}), "f32[2, 7, 8, 4]");
  EXPECT_EQ(Infer("scatter_add", {"i32[7, 8]", "f32[2, 7, 8, 4]"}, {I("axis", 1), I("size", 3)}),
            "f32[2, 3, 4]");
  EXPECT_EQ(Infer("gather_elements", {"f32[2, 3]", "i64[5, 3]"}), "f32[5, 3]");
  EXPECT_EQ(Infer("gather_nd", {"f32[2, 3, 4]", "i64[2, 5, 1]"}, {I("batch", 1)}), "f32[2, 5, 4]");
  EXPECT_EQ(Infer("gather_nd", {"f32[2, 3, 4]", "i64[6, 2]"}), "f32[6, 4]");
  EXPECT_EQ(Infer("scatter_nd", {"f32[2, 3, 4]", "i64[6, 2]", "f32[6, 4]"}, {S("mode", "add")}),
            "f32[2, 3, 4]");
  EXPECT_EQ(Infer("one_hot", {"i32[2, 3]"}, {I("depth", 5)}), "f32[2, 3, 5]");
  EXPECT_EQ(Got("axis").i, 2);
  EXPECT_EQ(Infer("one_hot", {"i32[2, 3]"}, {I("axis", 0), I("depth", 5), T("dtype", DType::kI8)}),
            "i8[5, 2, 3]");
  EXPECT_EQ(Infer("random", {"1"}, {L("dims", {4})}), "f32[4]");
  EXPECT_EQ(inferred.operand_dtypes[0], DType::kU64);
}

TEST_F(Opset, SymbolicDims) {
  EXPECT_EQ(Infer("matmul", {"f32[b, s, 768]", "f32[768, 3072]"}), "f32[b, s, 3072]");
  EXPECT_EQ(Checks(), "");
  EXPECT_EQ(Infer("reshape", {"f32[b, s, 768]"}, {L("to", {-1, 12, 64})}), "f32[b*s, 12, 64]");
  EXPECT_EQ(Checks(), "");
  EXPECT_EQ(Infer("concat", {"f32[b, 2]", "f32[s, 2]"}), "f32[b+s, 2]");
  EXPECT_EQ(Infer("add", {"f32[b]", "f32[1]"}), "f32[b]");
  EXPECT_EQ(Checks(), "");
  EXPECT_EQ(Infer("add", {"f32[b]", "f32[s]"}), "f32[b]");
  EXPECT_EQ(Checks(), "b == s");
  EXPECT_EQ(Infer("add", {"f32[b]", "f32[4]"}), "f32[4]");
  EXPECT_EQ(Checks(), "b == 4");
  EXPECT_EQ(Infer("matmul", {"f32[2, k]", "f32[4, 5]"}), "f32[2, 5]");
  EXPECT_EQ(Checks(), "k == 4");
  EXPECT_EQ(Infer("slice", {"f32[b]"}, {L("start", {1})}), "f32[b-1]");
  EXPECT_EQ(Checks(), "1 <= b, 0 <= b-1");
  EXPECT_EQ(Infer("conv", {"f32[n, 3, h]", "f32[8, 3, 3]"}, {I("hi", 1), I("lo", 1), I("stride", 2)}),
            "f32[n, 8, (h+1)//2]");
}

TEST_F(Opset, EffectsOnVariables) {
  Attr w{"var", {KEEL_ATTR_VAR, 0, 0, "", {}, {}}}, flag{"var", {KEEL_ATTR_VAR, 1, 0, "", {}, {}}};
  EXPECT_EQ(Infer("read", {}, {w}), "f32[2, 3]");
  EXPECT_EQ(Infer("read", {}, {flag}), "bool[]");
  EXPECT_EQ(Infer("assign", {"f32[2, 3]"}, {w}), "");
  EXPECT_EQ(Infer("assign_add", {"f32[b, 3]"}, {w}), "");
  EXPECT_EQ(Checks(), "2 == b");
  EXPECT_EQ(Infer("assign", {"i32[2, 3]"}, {w}), "assign: x is i32 but the variable is f32: x is i32[2, 3]");
  EXPECT_EQ(Infer("assign", {"f32[2, 4]"}, {w}),
            "assign: x has P = 4 but the variable has P = 3: x is f32[2, 4]");
  EXPECT_EQ(Infer("assign", {"f32[2]"}, {w}), "assign: x has 1 dims, which do not fit T[P..]: x is f32[2]");
  EXPECT_EQ(Infer("assign_sub", {"bool[]"}, {flag}).find("assign_sub: the variable is bool but must be"), 0u);
  EXPECT_EQ(Infer("read", {}), "read: attribute var (var T[P..]) must be given");
  EXPECT_EQ(Infer("read", {}, {I("var", 0)}), "read: attribute var is var T[P..] but got an integer");
  EXPECT_EQ(Infer("print", {}), "");
  EXPECT_EQ(Infer("print", {"f32[b]", "bool[]", "1"}), "");
  EXPECT_EQ(Infer("assert", {"bool[]", "f32[2]"}), "");
  EXPECT_EQ(Infer("assert", {"bool[2]"}), "assert: ok has 1 dims, which do not fit bool[]: ok is bool[2]");
  EXPECT_EQ(Infer("print", {}, {I("edge", -2)}),
            "print: edge = -2, but must be at least 0, or -1 for all elements");
  EXPECT_EQ(EffectOf(**catalogue.Find("read", 0)), EffectKind::kRead);
  EXPECT_EQ(EffectOf(**catalogue.Find("assign_add", 0)), EffectKind::kWrite);
  EXPECT_EQ(EffectOf(**catalogue.Find("add", 0)), EffectKind::kNone);
  EXPECT_TRUE(MayFail(**catalogue.Find("div", 0), DType::kI32));
  EXPECT_FALSE(MayFail(**catalogue.Find("div", 0), DType::kF32));
  EXPECT_TRUE(MayFail(**catalogue.Find("gather", 0), DType::kF32));
}

TEST_F(Opset, BadEffectsAreRefused) {
  auto refuse = [&](const char* clauses, const char* why) {
    Catalogue mine;
    absl::Status status = mine.AddText(absl::StrCat("opset t 1\nop t.x since 1  ", clauses, "\n"), "t");
    if (status.ok()) status = mine.Find("t.x", 0).status();
    EXPECT_NE(std::string(status.message()).find(why), std::string::npos) << status;
  };
  refuse("in x: f32[]  effect melt", "expected read, write, io");
  refuse("in x: f32[]  effect write(v)", "not an attribute");
  refuse("in x: f32[]  effect write", "requires a variable");
  refuse("in x: f32[]  attr v: i64 = 0  effect read(v)", "requires a variable");
  refuse("in x: f32[]  attr v: var f32[], u: var f32[]", "at most one variable");
  refuse("in x: f32[]  attr v: var any", "with a pattern");
  refuse("in x: f32[]  attr v: var f32[] = 3", "has no default");
  refuse("in x: f32[]  out y: f32[]  fails zero for melons \"no\"", "expected dtypes");
}

TEST_F(Opset, ErrorsNameOpOperandGotAndWanted) {
  EXPECT_EQ(Infer("matmul", {"f32[2, 4]", "f32[3, 5]"}),
            "matmul: b has k = 3 but a has k = 4: a is f32[2, 4], b is f32[3, 5]");
  EXPECT_EQ(Infer("add", {"f32[2]", "f32[3]"}),
            "add: shapes [2] and [3] do not broadcast (dims 2 and 3: equal, or one of them 1): a is f32[2], "
            "b is f32[3]");
  EXPECT_EQ(Infer("add", {"f32[2]", "i32[2]"}), "add: b is i32 but a is f32: a is f32[2], b is i32[2]");
  EXPECT_EQ(Infer("add", {"f32[2]"}), "add: takes 2 operands, got 1: a is f32[2]");
  EXPECT_EQ(Infer("exp", {"i32[2]"}), "exp: x is i32 but must be one of f16, bf16, f32, f64: x is i32[2]");
  EXPECT_EQ(Infer("conv", {"f32[1]", "f32[1, 1]"}),
            "conv: x has 1 dims, which do not fit T[n, c, S..]: x is f32[1], w is f32[1, 1]");
  EXPECT_EQ(Infer("conv", {"f32[1, 4, 9]", "f32[6, 3, 3]"}),
            "conv: x has 4 channels but w has 3 in each of 1 groups: x is f32[1, 4, 9], w is f32[6, 3, 3]");
  EXPECT_EQ(Infer("relu", {"f32[2]"}, {I("slope", 1)}),
            "relu: has no attribute 'slope'; it has none: x is f32[2]");
  EXPECT_EQ(Infer("arg_max", {"f32[2, 3]"}, {I("axis", 2)}),
            "arg_max: axis = 2 is not in [-2, 2): x is f32[2, 3]");
  EXPECT_EQ(Infer("bit_cast", {"f32[2]"}, {T("to", DType::kF64)}),
            "bit_cast: elements of x have 32 bits, but those of f64 have 64: x is f32[2]");
  EXPECT_EQ(Infer("bit_cast", {"u8[2]"}, {T("to", DType::kBool)}),
            "bit_cast: bits of u8 may be no bool; compare x with 0 instead: x is u8[2]");
  EXPECT_EQ(Infer("cast", {"f32[2]"}), "cast: attribute to (dtype or storage) must be given: x is f32[2]");
  EXPECT_EQ(Infer("reduce_sum", {"f32[2]"}, {F("axes", 1)}),
            "reduce_sum: attribute axes is axes[P] but got a float: x is f32[2]");
  EXPECT_EQ(Infer("reshape", {"f32[2, 3]"}, {L("to", {4, -1})}),
            "reshape: [2, 3] has 6 elements, which do not fit [4, -1]: x is f32[2, 3]");
  EXPECT_EQ(Infer("scatter_nd", {"f32[2]", "i64[1, 1]", "f32[1]"}, {S("mode", "sub")}),
            "scatter_nd: attribute mode is 'sub' but must be one of set, add, mul, max, min: x is f32[2], i "
            "is i64[1, 1], u is f32[1]");
  EXPECT_EQ(Infer("concat", {"f32[2, 3]", "f32[4, 3]"}, {I("axis", 1)}),
            "concat: x[1] has P = 4 but x[0] has P = 2: x[0] is f32[2, 3], x[1] is f32[4, 3]");
  EXPECT_EQ(Infer("adds", {}), "no op is named 'adds'; did you mean add?");
  EXPECT_EQ(catalogue.Find("add", 7).status().message(), "op add has no version 7; the newest here is 1");
  absl::Status status =
      keel::Infer(**catalogue.Find("add", 0), Operands({"f32[2]", "f64[2]"}), {}, dims, &inferred);
  EXPECT_EQ(ErrorFact(status, kErrorOp), "add");
  EXPECT_EQ(ErrorFact(status, kErrorHint), "if the conversion is intended, write cast(x){to=f32}");
}

TEST_F(Opset, HostileOperandsAreErrors) {
  auto fails = [&](const char* op, const std::vector<Operand>& in, const Attrs& attrs = {}) {
    EXPECT_FALSE(keel::Infer(**catalogue.Find(op, 0), in, attrs, dims, &inferred).ok()) << op;
  };
  Operand bad = Operands({"f32[2]"})[0];
  bad.type.dims[0] = std::numeric_limits<int64_t>::min() + 77;  // an invalid handle
  fails("relu", {bad});
  bad.type.dims[0] = -1;
  fails("relu", {bad});
  bad.type.dims[0] = kMaxDim + 1;
  fails("relu", {bad});
  bad.type.dims.assign(9, 1);
  fails("relu", {bad});
  bad.type.dims.clear();
  bad.type.dtype = static_cast<DType>(99);
  fails("relu", {bad});
  int64_t most = std::numeric_limits<int64_t>::max(), least = std::numeric_limits<int64_t>::min();
  auto image = Operands({"f32[1, 1, 5]", "f32[1, 1, 3]"});
  for (int64_t n : {most, least, -most, int64_t{0}, int64_t{-1}}) {
    if (n != most) fails("conv", image, {I("stride", n)});
    fails("conv", image, {I("dil", n)});
    fails("conv", image, {I("groups", n)});
    if (n != 0) fails("conv", image, {I("lo", n)});
    fails("max_pool", {image[0]}, {L("window", {n})});
    if (n != 0) fails("fill", Operands({"f32[]"}), {L("dims", {n})});
    fails("reshape", Operands({"f32[2, 3]"}), {L("to", {n, n})});
    if (n < -1 || n > 1) fails("arg_max", Operands({"f32[2]"}), {I("axis", n)});
    if (n != 0) fails("tile", Operands({"f32[2]"}), {L("times", {n})});
  }
  fails("transpose", Operands({"f32[2, 3]"}), {L("perm", {0, 0})});
  fails("transpose", Operands({"f32[2, 3]"}), {L("perm", {0})});
  fails("reshape", Operands({"f32[2, 3]"}), {L("to", {-1, -1})});
  fails("reshape", Operands({"f32[0, 3]"}), {L("to", {0, -1})});
  fails("reshape", Operands({"f32[1]"}), {L("to", std::vector<int64_t>(9, 1))});
  fails("split", Operands({"f32[8]"}), {L("sizes", std::vector<int64_t>(5000, 0))});
  fails("concat", {});
  fails("gather_nd", Operands({"f32[2, 3]", "i64[2, 1]"}), {I("batch", -1)});
  fails("gather_nd", Operands({"f32[2, 3]", "i64[2, 1]"}), {I("batch", 7)});
  fails("cast", Operands({"f32[2]"}), {{"to", {KEEL_ATTR_DTYPE, 99, 0, "", {}, {}}}});
  fails("add", Operands({"f32[2]", "-"}));
  EXPECT_EQ(Infer("broadcast_to", {"f32[1]"}, {L("dims", {-3})}),
            "broadcast_to: attribute dims has dim -3, which is not in [0, 2^40]: x is f32[1]");
}

}  // namespace
}  // namespace keel
