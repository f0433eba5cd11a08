// opset_body_test.cc: redundant facts of the catalogue agree: symbolic and concrete inference; the body of a
// composite and the declared types of its op.

#include <map>
#include <random>

#include "gtest/gtest.h"
#include "tests/kernel/opset_helpers.h"

namespace keel {
namespace {

struct Case {
  const char* op;
  std::vector<const char*> types;
  Attrs attrs;
};

// Symbolic inference with numbers substituted for the symbols must equal concrete inference.
TEST_F(Opset, SymbolicAgreesWithConcrete) {
  const std::vector<Case> cases = {
      {"add", {"f32[a, b]", "f32[c]"}, {}},
      {"matmul", {"f32[a, b, 3]", "f32[c, d]"}, {}},
      {"einsum", {"f32[a, b, c]", "f32[b, d, a]"}, {L("to", {3, 0}), L("x", {0, 1, 2}), L("y", {1, 3, 0})}},
      {"solve", {"f32[a, b, b]", "f32[c, 3, d]"}, {}},
      {"svd", {"f32[a, b, c]"}, {}},
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
      int64_t values[4];  // from 2: broadcasting a symbol with value 1 is refused by design
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

// A sink that infers each node like the graph builder.
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

// Each op with a body.
const std::vector<Case> kBodies = {
    {"sigmoid", {"f32[b, 3]"}, {}},
    {"gelu", {"f64[b]"}, {}},
    {"gelu", {"f16[b]"}, {B("tanh", true)}},
    {"silu", {"f32[2]"}, {}},
    {"softplus", {"f32[2]"}, {}},
    {"leaky_relu", {"f32[b]"}, {F("alpha", 0.2)}},
    {"clamp", {"i32[b]", "i32[]", "i32[]"}, {}},
    {"square", {"i8[2]"}, {}},
    {"tan", {"f32[b]"}, {}},
    {"atan", {"f16[b]"}, {}},
    {"asin", {"f64[b]"}, {}},
    {"acos", {"bf16[2]"}, {}},
    {"atan2", {"f16[b, 3]", "f16[3]"}, {}},
    {"softmax", {"f32[b, s, 4]"}, {I("axis", 1)}},
    {"log_softmax", {"f32[b, 4]"}, {}},
    {"log_sum_exp", {"f32[b, s, 4]"}, {I("axis", -2)}},
    {"cross_entropy", {"f64[b, 10]", "i32[b]"}, {}},
    {"layer_norm", {"f32[b, s, 8]", "f32[8]", "f32[8]"}, {}},
    {"rms_norm", {"f32[b, n]", "f32[n]"}, {}},
    {"batch_norm", {"f32[n, 3, h, w]", "f32[3]", "f32[3]", "f32[3]", "f32[3]"}, {}},
    {"lrn", {"f32[n, 8, h, w]"}, {I("size", 5)}},
    {"linear", {"f32[b, 4]", "f32[4, 5]", "f32[5]"}, {}},
    {"matmul_integer", {"u8[b, m, k]", "i8[k, n]"}, {}},
    {"matmul_integer", {"i8[b, 3]", "u8[s, 3, 4]", "i8[b, 1]", "u8[4]"}, {}},
    {"conv_integer", {"u8[b, 3, h, w]", "i8[4, 3, 3, 3]"}, {}},
    {"conv_integer",
     {"i8[2, 4, 9]", "u8[6, 2, 3]", "i8[]", "u8[6, 1, 1]"},
     {I("groups", 2), L("stride", {2}), L("dil", {2}), L("lo", {1}), L("hi", {3})}},
    {"matmul_blocks", {"f32[b, 60]", "u8[5, 2, 16]", "f32[5, 2]"}, {}},
    {"matmul_blocks", {"f32[b, s, 60]", "u8[n, 2, 16]", "f32[n, 2]"}, {B("rounded", true)}},
    {"matmul_blocks", {"f16[b, s, 33]", "u8[n, 3, 16]", "f16[n, 3]", "f16[n, 3]"}, {I("bits", 8)}},
    {"dft", {"f32[b, n, 3, 2]"}, {I("axis", 1)}},
    {"dft", {"f16[b, 6, 1]"}, {I("length", 9), B("onesided", true)}},
    {"dft", {"f64[5, 2]"}, {B("inverse", true), B("onesided", true)}},
    {"attention", {"f32[b, h, l, 64]", "f32[b, h, s, 64]", "f32[b, h, s, 32]"}, {}},
    {"attention",
     {"f32[b, h, l, 64]", "f32[b, h, s, 64]", "f32[b, h, s, 32]", "f32[l, s]"},
     {B("causal", true), F("scale", 0.5)}},
    {"inv", {"f32[b, n, n]"}, {}},
    {"mean_squared_error", {"f32[b, 2]", "f32[b, 2]"}, {}},
    {"sum_to", {"f32[b, s, 3]"}, {L("dims", {1, 3})}},
    {"linspace", {"f16[]", "f16[]"}, {I("n", 5)}},
    {"roll", {"i8[b, n, 3]"}, {I("axis", 1), I("shift", -2)}},
    {"einsum", {"f32[b, s, 3]", "f32[3, b, n]"}, {L("to", {0, 1, 3}), L("x", {0, 1, 2}), L("y", {2, 0, 3})}},
    {"einsum", {"i16[k, m, b]", "i16[b, n, k]"}, {L("to", {3, 1}), L("x", {0, 1, 2}), L("y", {2, 3, 0})}},
    {"einsum", {"f16[m]", "f16[n, 2]"}, {L("to", {2, 0}), L("x", {0}), L("y", {1, 2})}},
    {"nonzero", {"bool[n]"}, {I("size", 5)}},
    {"nonzero", {"f16[b, 3, n]"}, {I("size", 5)}},
    {"nonzero", {"u8[2, 1, 3, 2, b, 2, 1, n]"}, {I("size", 0)}},
    {"unique", {"f32[n]"}, {I("size", 5)}},
    {"unique", {"bool[n]"}, {I("size", 2)}},
    {"slice_index", {"i32[3]"}, {L("dims", {1, 2, 3}), L("of", {4, 4, 4})}},
    {"dynamic_slice", {"bool[b, 4, 5]", "i64[3]"}, {L("dims", {1, 2, 3})}},
    {"dynamic_update_slice", {"f32[b, n]", "f32[b, 2]", "i32[2]"}, {}},
    {"reduce_var", {"f32[b, n]"}, {L("axes", {-1}), F("ddof", 1)}},
    {"reduce_std", {"f32[b, n]"}, {B("keep", true)}},
    {"cumprod", {"i8[b, n, 3]"}, {I("axis", 1), B("reverse", true)}},
    {"cumprod", {"f32[n]"}, {B("exclusive", true)}},
    {"sort", {"i32[b, n, 3]"}, {I("axis", 1)}},
    {"argsort", {"f32[b, n]"}, {B("descending", true)}},
    {"eye", {}, {I("cols", 4), I("rows", 3)}},
    {"random_uniform", {"u64[]", "f32[]", "f32[]"}, {L("dims", {2, 3})}},
    {"random_uniform", {"u64[]", "i32[]", "i32[]"}, {L("dims", {5})}},
    {"erf_inv", {"f16[b, 3]"}, {}},
    {"truncated_normal", {"u64[]", "f32[]", "f32[]"}, {L("dims", {2, 3})}},
    {"categorical", {"u64[]", "f32[b, n]"}, {L("dims", {5})}},
    {"categorical", {"u64[]", "f16[3]"}, {}},
    {"shuffle", {"u64[]", "bool[b, n, 3]"}, {I("axis", 1)}},
};

TEST_F(Opset, BodiesHaveTheTypesThatTheirOpsDeclare) {
  std::map<std::string, int> seen;
  for (const Case& c : kBodies) {
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
