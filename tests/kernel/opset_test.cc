// opset_test.cc: the op catalogue: inference against literal results, symbolic against concrete, error
// texts, and bodies, whose types must be those that the op declares.

#include "kernel/opset/opset.h"

#include <limits>
#include <map>
#include <random>

#include "gtest/gtest.h"

namespace keel {
namespace {

Attr I(const char* name, int64_t i) { return {name, {KEEL_ATTR_I64, i, 0, "", {}, {}}}; }
Attr B(const char* name, bool b) { return {name, {KEEL_ATTR_BOOL, b, 0, "", {}, {}}}; }
Attr F(const char* name, double f) { return {name, {KEEL_ATTR_F64, 0, f, "", {}, {}}}; }
Attr S(const char* name, const char* s) { return {name, {KEEL_ATTR_STR, 0, 0, s, {}, {}}}; }
Attr T(const char* name, DType d) {
  return {name, {KEEL_ATTR_DTYPE, static_cast<int64_t>(d), 0, "", {}, {}}};
}
Attr L(const char* name, std::vector<int64_t> list) {
  return {name, {KEEL_ATTR_I64S, 0, 0, "", std::move(list), {}}};
}

// One catalogue and one table of dims; types are written as in graphs: "f32[b, 2]", or "1" and "1.0" for
// literals, or "-" for an operand left out.
class Opset : public testing::Test {
 protected:
  TensorType Type(std::string_view text) {
    TensorType out;
    size_t open = text.find('[');
    out.dtype = DTypeNamed(text.substr(0, open)).value_or(DType::kNone);
    std::string_view rest = text.substr(open + 1, text.size() - open - 2);
    while (!rest.empty()) {
      size_t comma = rest.find(',');
      out.dims.push_back(*dims.Parse(rest.substr(0, comma)));
      rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
    }
    return out;
  }
  std::vector<Operand> Operands(const std::vector<const char*>& types) {
    std::vector<Operand> out;
    for (std::string_view t : types) {
      Operand& o = out.emplace_back();
      if (t == "-")
        o.kind = Operand::kAbsent;
      else if (t == "1")
        o.kind = Operand::kWeakInt;
      else if (t == "1.0")
        o.kind = Operand::kWeakFloat;
      else
        o.type = Type(t);
    }
    return out;
  }
  // "f32[2], i64[2]", or the error's message.
  std::string Infer(const char* op, const std::vector<const char*>& types, const Attrs& attrs = {}) {
    auto def = catalogue.Find(op, 0);
    if (!def.ok()) return std::string(def.status().message());
    absl::Status status = keel::Infer(**def, Operands(types), attrs, dims, &inferred);
    if (!status.ok()) return std::string(status.message());
    std::string out;
    for (const TensorType& r : inferred.results)
      absl::StrAppend(&out, out.empty() ? "" : ", ", Print(r, dims));
    return out;
  }
  std::string Checks() {
    std::string out;
    for (const auto& c : inferred.checks)
      absl::StrAppend(&out, out.empty() ? "" : ", ", dims.Print(c.a),
                      c.equal ? " == " : " <= ", dims.Print(c.b));
    return out;
  }
  const AttrValue& Got(std::string_view name) {
    for (const Attr& a : inferred.attrs)
      if (a.name == name) return a.value;
    static const AttrValue kNothing;
    return kNothing;
  }

  Catalogue catalogue;
  DimTable dims;
  Inferred inferred;
};

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
  EXPECT_EQ(Infer("cast", {"f32[2]"}, {T("to", DType::kBool)}), "bool[2]");
  EXPECT_EQ(Infer("clamp", {"f32[2]", "1", "1.0"}), "f32[2]");
}

TEST_F(Opset, LiteralsTakeTheirPartnersDtype) {
  EXPECT_EQ(Infer("add", {"f64[2]", "1"}), "f64[2]");
  EXPECT_EQ(inferred.operand_dtypes, (std::vector<DType>{DType::kF64, DType::kF64}));
  EXPECT_EQ(Infer("add", {"1", "1"}), "i32[]");
  EXPECT_EQ(Infer("add", {"1", "1.0"}), "f32[]");
  EXPECT_EQ(Infer("exp", {"1"}), "f32[]");
  EXPECT_EQ(Infer("add", {"i32[2]", "1.0"}),
            "add: b is a float literal but i32 is wanted: a is i32[2], b is a float literal");
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

TEST_F(Opset, Reductions) {
  EXPECT_EQ(Infer("reduce_sum", {"f32[2, 3, 4]"}), "f32[]");
  EXPECT_EQ(Infer("reduce_sum", {"f32[2, 3, 4]"}, {L("axes", {-1, 0})}), "f32[3]");
  EXPECT_EQ(Got("axes").list, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(Infer("reduce_max", {"f32[2, 3, 4]"}, {L("axes", {1}), B("keep", true)}), "f32[2, 1, 4]");
  EXPECT_EQ(Infer("reduce_mean", {"f32[2, 3]"}, {L("axes", {})}), "f32[2, 3]");
  EXPECT_EQ(Infer("arg_max", {"f32[2, 3]"}, {I("axis", -1)}), "i64[2]");
  EXPECT_EQ(Got("axis").i, 1);
  EXPECT_EQ(Infer("top_k", {"f32[2, 3]"}, {I("k", 2)}), "f32[2, 2], i64[2, 2]");
  EXPECT_EQ(Infer("cumsum", {"i32[2, 3]"}, {I("axis", 1)}), "i32[2, 3]");
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
  EXPECT_EQ(Infer("pad", {"f32[3]", "1"}, {I("gap", 1), I("hi", 2), I("lo", 1)}), "f32[8]");
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
            "conv: x has 4 channels but w wants 3 in each of 1 groups: x is f32[1, 4, 9], w is f32[6, 3, 3]");
  EXPECT_EQ(Infer("relu", {"f32[2]"}, {I("slope", 1)}),
            "relu: has no attribute 'slope'; it has none: x is f32[2]");
  EXPECT_EQ(Infer("arg_max", {"f32[2, 3]"}, {I("axis", 2)}),
            "arg_max: axis = 2 is not in [-2, 2): x is f32[2, 3]");
  EXPECT_EQ(Infer("cast", {"f32[2]"}), "cast: attribute to (dtype) must be given: x is f32[2]");
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
  EXPECT_EQ(ErrorFact(status, kErrorHint), "write cast(x){to=f32} where you mean it");
}

TEST_F(Opset, HostileOperandsAreErrors) {
  auto fails = [&](const char* op, const std::vector<Operand>& in, const Attrs& attrs = {}) {
    EXPECT_FALSE(keel::Infer(**catalogue.Find(op, 0), in, attrs, dims, &inferred).ok()) << op;
  };
  Operand bad = Operands({"f32[2]"})[0];
  bad.type.dims[0] = std::numeric_limits<int64_t>::min() + 77;  // a handle of nobody
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

// Symbolic inference, then numbers for the symbols, must give what concrete inference gives.
struct Case {
  const char* op;
  std::vector<const char*> types;
  Attrs attrs;
};

TEST_F(Opset, SymbolicAgreesWithConcrete) {
  const std::vector<Case> cases = {
      {"add", {"f32[a, b]", "f32[c]"}, {}},
      {"matmul", {"f32[a, b, 3]", "f32[c, d]"}, {}},
      {"conv", {"f32[a, 2, b, c]", "f32[4, 2, 3, 2]"}, {I("hi", 1), L("lo", {0, 2}), L("stride", {2, 3})}},
      {"max_pool", {"f32[1, a, b]"}, {I("dil", 2), I("stride", 2), L("window", {3})}},
      {"reshape", {"f32[a, b, 6]"}, {L("to", {-1, 3, 2})}},
      {"concat", {"f32[a, b]", "f32[c, d]"}, {I("axis", 1)}},
      {"slice", {"f32[a, b]"}, {L("start", {1, 2}), I("step", 2)}},
      {"pad", {"f32[a, b]", "f32[]"}, {I("gap", 2), L("lo", {1, 0})}},
      {"split", {"f32[a, b]"}, {I("axis", 1), L("sizes", {2, 3})}},
      {"scatter_add", {"i32[a]", "f32[b, c]"}, {I("size", 7)}},
      {"softmax", {"f32[a, b, c]"}, {I("axis", 1)}},
      {"attention", {"f32[a, b, 4]", "f32[c, d, 4]", "f32[c, b, 2]"}, {}},
      {"layer_norm", {"f32[a, b]", "f32[c]", "f32[5]"}, {}},
      {"sum_to", {"f32[a, b]"}, {L("dims", {1, 3})}},
  };
  std::mt19937 random(7);
  int agreed = 0, refused = 0;
  for (const Case& c : cases) {
    const OpDef& def = **catalogue.Find(c.op, 0);
    DimTable table;
    for (const char* name : {"a", "b", "c", "d"}) ASSERT_TRUE(table.Symbol(name).ok());
    std::vector<Operand> symbolic = Operands(c.types);
    for (Operand& o : symbolic)
      for (Dim& d : o.type.dims) d = *table.Parse(dims.Print(d));
    Inferred general;
    ASSERT_EQ(keel::Infer(def, symbolic, c.attrs, table, &general), absl::OkStatus());
    for (int round = 0; round < 200; round++) {
      int64_t values[4];  // from 2: broadcasting of a symbol that is 1 is refused on purpose
      for (int64_t& v : values) v = std::uniform_int_distribution<int64_t>(2, 6)(random);
      bool holds = true;
      for (const auto& check : general.checks) {
        int64_t a = *table.Evaluate(check.a, values), b = *table.Evaluate(check.b, values);
        holds = holds && (check.equal ? a == b : a <= b);
      }
      std::vector<Operand> concrete = symbolic;
      for (Operand& o : concrete)
        for (Dim& d : o.type.dims) d = *table.Evaluate(d, values);
      Inferred exact;
      absl::Status status = keel::Infer(def, concrete, c.attrs, table, &exact);
      ASSERT_EQ(status.ok(), holds) << c.op << ": " << status;
      (holds ? agreed : refused)++;
      if (!holds) continue;
      ASSERT_EQ(general.results.size(), exact.results.size());
      for (size_t r = 0; r < exact.results.size(); r++) {
        TensorType filled = general.results[r];
        for (Dim& d : filled.dims) d = *table.Evaluate(d, values);
        EXPECT_EQ(filled, exact.results[r]) << c.op;
      }
    }
  }
  EXPECT_GT(agreed, 500);
  EXPECT_GT(refused, 300);
}

// A sink that infers each node as the graph builder does.
class Recorder : public BodySink {
 public:
  Recorder(const Catalogue& catalogue, DimTable& dims) : catalogue_(catalogue), dims_(dims) {}
  Value Add(const TensorType& type) {
    types.push_back(type);
    return static_cast<Value>(types.size() - 1);
  }
  absl::StatusOr<std::vector<Value>> Node(std::string_view op, std::span<const Value> in,
                                          const Attrs& attrs) override {
    ASSIGN_OR_RETURN(const OpDef* def, catalogue_.Find(op, 0));
    std::vector<Operand> operands(in.size());
    for (size_t i = 0; i < in.size(); i++) {
      if (in[i] == kNone)
        operands[i].kind = Operand::kAbsent;
      else
        operands[i].type = types.at(in[i]);
    }
    Inferred inferred;
    RETURN_IF_ERROR(Infer(*def, operands, attrs, dims_, &inferred));
    std::vector<Value> out;
    for (const TensorType& r : inferred.results) out.push_back(Add(r));
    log.push_back(std::string(op));
    return out;
  }
  absl::StatusOr<Value> Literal(DType dtype, double value) override {
    literals.push_back(value);
    TensorType scalar;
    scalar.dtype = dtype;
    return Add(scalar);
  }
  TensorType Type(Value v) override { return types.at(v); }

  std::vector<TensorType> types;
  std::vector<std::string> log;
  std::vector<double> literals;

 private:
  const Catalogue& catalogue_;
  DimTable& dims_;
};

TEST_F(Opset, BodiesHaveTheTypesThatTheirOpsDeclare) {
  const std::vector<Case> cases = {
      {"sigmoid", {"f32[b, 3]"}, {}},
      {"gelu", {"f64[b]"}, {}},
      {"gelu", {"f16[b]"}, {B("tanh", true)}},
      {"silu", {"f32[2]"}, {}},
      {"softplus", {"f32[2]"}, {}},
      {"leaky_relu", {"f32[b]"}, {F("alpha", 0.2)}},
      {"clamp", {"i32[b]", "i32[]", "i32[]"}, {}},
      {"square", {"i8[2]"}, {}},
      {"softmax", {"f32[b, s, 4]"}, {I("axis", 1)}},
      {"log_softmax", {"f32[b, 4]"}, {}},
      {"log_sum_exp", {"f32[b, s, 4]"}, {I("axis", -2)}},
      {"cross_entropy", {"f64[b, 10]", "i32[b]"}, {}},
      {"layer_norm", {"f32[b, s, 8]", "f32[8]", "f32[8]"}, {}},
      {"rms_norm", {"f32[b, n]", "f32[n]"}, {}},
      {"batch_norm", {"f32[n, 3, h, w]", "f32[3]", "f32[3]", "f32[3]", "f32[3]"}, {}},
      {"lrn", {"f32[n, 8, h, w]"}, {I("size", 5)}},
      {"linear", {"f32[b, 4]", "f32[4, 5]", "f32[5]"}, {}},
      {"attention", {"f32[b, h, l, 64]", "f32[b, h, s, 64]", "f32[b, h, s, 32]"}, {}},
      {"attention",
       {"f32[b, h, l, 64]", "f32[b, h, s, 64]", "f32[b, h, s, 32]", "f32[l, s]"},
       {B("causal", true), F("scale", 0.5)}},
      {"mean_squared_error", {"f32[b, 2]", "f32[b, 2]"}, {}},
      {"sum_to", {"f32[b, s, 3]"}, {L("dims", {1, 3})}},
  };
  std::map<std::string, int> seen;
  for (const Case& c : cases) {
    std::string declared = Infer(c.op, c.types, c.attrs);
    const OpDef* def = *catalogue.Find(c.op, 0);
    Recorder recorder(catalogue, dims);
    std::vector<BodySink::Value> in;
    for (const Operand& o : Operands(c.types)) in.push_back(recorder.Add(o.type));
    auto out = ExpandBody(catalogue, *def, in, c.attrs, dims, recorder);
    ASSERT_TRUE(out.ok()) << c.op << ": " << out.status();
    std::string got;
    for (auto v : *out) absl::StrAppend(&got, got.empty() ? "" : ", ", Print(recorder.Type(v), dims));
    EXPECT_EQ(got, declared) << c.op;
    EXPECT_FALSE(recorder.log.empty());
    seen[c.op]++;
  }
  for (const std::string& name : catalogue.Names())
    EXPECT_EQ(HasBody(**catalogue.Find(name, 0)), seen.count(name) == 1) << name;
}

TEST_F(Opset, BodiesWriteTheNodesThatTheTextSays) {
  Recorder r(catalogue, dims);
  auto x = r.Add(Type("f32[2, 3]"));
  ASSERT_TRUE(
      ExpandBody(catalogue, **catalogue.Find("leaky_relu", 0), {{x}}, {F("alpha", 0.25)}, dims, r).ok());
  EXPECT_EQ(r.log, (std::vector<std::string>{"greater_equal", "mul", "select"}));
  EXPECT_EQ(r.literals, (std::vector<double>{0, 0.25}));
}

}  // namespace
}  // namespace keel
