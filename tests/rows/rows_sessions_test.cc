// rows_sessions_test.cc: examples about graphs, names, sessions and signatures in C++; see README.md.
#include <filesystem>
#include <set>

#include "tests/rows/rows.h"

namespace {

using keel::Tensor;

TEST_P(Rows, Z2_WaysToStartASession) {  // a cluster needs a plugin
  keel::Graph g;
  keel::GraphScope in(g);
  Tensor a = keel::constant(3), b = keel::constant(5), c = a + b, d;
  {
    keel::InteractiveSession session;
    EXPECT_EQ(Printed(keel::eval(c)), "8");
  }
  {
    keel::Scope there = keel::device("reference");
    d = c * 2;
  }
  EXPECT_EQ(Printed(keel::Session().run(c)), "8");
  EXPECT_EQ(Printed(keel::Session(g, GetParam()).run(d)), "16");
}
// Two independent loops; with foldable and duplicate nodes.
constexpr char kLoops[] = R"(keel 1
fn @f(x: f32[1000]) {
  z = reduce_sum(x)
  k = f32(2.0) * f32(3.0)
  a = scan(z, x){carry=1}
    body(s, v) { t = tanh(s + v)
      yield t }
  y = reduce_sum(x)
  b = scan(y, x){carry=1, reverse=true}
    body(s, v) { t = sin(s + v)
      yield t }
  return a * k, b
}
entry f = @f (x) -> (c, d)
)";
TEST_P(Rows, V7_IndependentPartsRunSideBySide) {
  keel::Module module = keel::Module::parse(keel::default_context(), kLoops);
  auto plan = [&](const char* lanes) {
    return keel::Session(module, GetParam(), {{"threads", "2"}, {"lanes", lanes}, {"profile", "1"}})
        .prepare();
  };
  std::vector<float> numbers(1000);
  for (size_t i = 0; i < numbers.size(); i++) numbers[i] = static_cast<float>(i % 7) - 3;
  const std::vector in{Tensor(numbers, {1000}).array()};
  std::set<uint32_t> lanes;
  const auto watch = [&](const keel_event& event) {
    lanes.insert(event.lane);
    return false;
  };
  const keel::Plan beside = plan("auto");
  EXPECT_EQ(beside.report(in).find("\"lanes\":[[") != std::string::npos, GetParam() == "cpu");
  std::vector<keel::Array> got = beside.run_observed(in, watch), wanted = plan("off").run(in);
  for (size_t i = 0; i < 2; i++) EXPECT_EQ(Printed(Tensor(got[i])), Printed(Tensor(wanted[i])));
  EXPECT_LE(lanes.size(), GetParam() == "cpu" ? 2u : 1u);
}
TEST_P(Rows, T3_FoldedOnceAndSideBySide) {
  keel::Module module = keel::Module::parse(keel::default_context(), kLoops);
  const keel::Plan plan = keel::Session(module, GetParam(), {{"threads", "2"}}).prepare();
  const std::string report = plan.report({});
  EXPECT_EQ(report.find("\"node\":\"k\""), std::string::npos) << report;
  EXPECT_EQ(report.find("\"node\":\"y\""), std::string::npos) << report;
  EXPECT_EQ(report.find("\"lanes\":[[") != std::string::npos, GetParam() == "cpu") << report;
}
TEST_P(Rows, Z3_SaysWhatWasNotFed) {
  keel::Graph g;
  keel::GraphScope in(g);
  Tensor x = keel::placeholder(KEEL_F32, {1024, 1024}), y = keel::matmul(x, x);
  keel::Session session(g);
  EXPECT_EQ(sdk_test::Failure([&] { session.run(y); }),
            "You must feed a value for parameter \"placeholder\", which is f32[1024, 1024]");
}
TEST_P(Rows, Z4_FeedsAreCast) {
  keel::Graph g;
  keel::GraphScope in(g);
  Tensor x = keel::placeholder(KEEL_F32, {4, 4}), y = keel::matmul(x, x);
  keel::Session session(g);
  std::vector<double> numbers(16, 0.5);  // f64, like np.random.rand
  EXPECT_EQ(Printed(session.run(y, {{x, Tensor(numbers, {4, 4})}})[{0, 0}]), "1.0");
  EXPECT_TRUE(sdk_test::Has(sdk_test::Failure([&] {
                              session.run(y, {{x, keel::zeros({3, 3})}});
                            }),
                            "Cannot feed value of shape [3, 3] for \"placeholder\", which is f32[4, 4]"));
}
TEST_P(Rows, Z16_PlaceholdersAreNotEager) {
  std::string said = sdk_test::Failure([] { keel::placeholder(KEEL_F32, {}); });
  EXPECT_TRUE(said.starts_with("keel::placeholder() is not compatible with eager execution.")) << said;
}
TEST_P(Rows, Z8_EagerFromTheStart) { EXPECT_TRUE(keel::executing_eagerly()); }

TEST_P(Rows, V4_GraphsHaveNodesAndValues) {  // the figure: add_1 reads MatMul_1 and a second input
  keel::Graph g;
  keel::GraphScope in(g);
  Tensor x = keel::placeholder(KEEL_F32, {2, 2}, "x"), b = keel::constant({1., 2.}, "b");
  keel::matmul(keel::matmul(x, x) + b, x) + b;
  std::string nodes, values;
  for (const keel::Node& node : g.nodes()) {
    nodes += node.name + " =";
    for (const std::string& in : node.inputs) nodes += " " + in;
    nodes += "; ";
  }
  for (const keel::Value& value : g.values()) values += value.name + " ";
  EXPECT_EQ(nodes, "matmul = x x; add = matmul b; matmul_1 = add x; add_1 = matmul_1 b; ");
  EXPECT_EQ(values, "x b matmul add matmul_1 add_1 ");
}

TEST_P(Rows, K1_FourSteps) {
  keel::Graph g;
  Tensor c;
  {
    keel::GraphScope in(g);
    Tensor a = keel::constant(3), b = keel::constant(5);
    c = a + b;
  }
  keel::Session session(g);
  EXPECT_EQ(session.run(c).item<int32_t>(), 8);
}
TEST_P(Rows, K4_NamesOfNodesAndValues) {
  keel::Graph graph;
  keel::GraphScope in(graph);
  keel::constant(3, "const");
  keel::Graph g = keel::default_graph();
  EXPECT_EQ(Printed(keel::Session(g).run(g.value("const:0"))), "3");
  EXPECT_EQ(g.node("const").name, "const");
}
TEST_P(Rows, K5_EagerNamesHaveNoEffect) {
  Tensor a = keel::constant(3, "const"), b = keel::constant(5, "const");
  EXPECT_EQ(Printed(a, " ", b), "3 5");
}
TEST_P(Rows, K11_TheDefaultGraph) {
  keel::Graph g;
  keel::GraphScope in(g);
  EXPECT_EQ(keel::default_graph().get(), g.get());
}

TEST_P(Rows, Z17_AnEagerCheckpointInASession) {
  std::string path = testing::TempDir() + "rows_ckpt" + std::to_string(getpid()) + GetParam() + ".keel";
  const keel::Context& context = keel::default_context();
  keel::Variable eager(context, Tensor{1.f, 2.f}.array());
  eager.assign_add(Tensor{1.f, 1.f}.array());
  keel::save_checkpoint(context, path, {{"layer/w", eager}});
  keel::Module graph = keel::Module::parse(
      context,
      "keel 1\nvar \"layer/w\": f32[2] = [0.0, 0.0]\nfn @f(x: f32[]) {\n  y = read(\"layer/w\") * x\n"
      "  return y\n}\nentry f = @f (x) -> (y)\n");
  keel::load_checkpoint(context, path, {{"layer/w", keel::Variable(graph, "layer/w")}});
  std::filesystem::remove(path);
  EXPECT_EQ(Printed(keel::Session(graph, GetParam()).run("y", {{"x", 10}})), "[20. 30.]");
}

TEST_P(Rows, T11_ConcreteSignatures) {
  auto my_relu =
      keel::function("my_relu", [](const auto& x) { return keel::maximum(0., x); }, {.args = {"x"}});
  my_relu(Tensor(5.5));
  my_relu(std::vector{1, -1});
  my_relu(Tensor{3., -3.});
  EXPECT_EQ(
      my_relu.signatures(),
      "my_relu(x)\n  Args:\n    x: float32 Tensor, shape=()\n  Returns:\n    float32 Tensor, shape=()\n\n"
      "my_relu(x=[1, -1])\n  Returns:\n    float32 Tensor, shape=(2,)\n\n"
      "my_relu(x)\n  Args:\n    x: float32 Tensor, shape=(2,)\n  Returns:\n"
      "    float32 Tensor, shape=(2,)\n");
}
TEST_P(Rows, T19_SaysWhatToMend) {
  Tensor scale = {2.f, 3.f};
  auto f = keel::function("f", [&](const Tensor& x, int n) { return x * scale + n; }, {.args = {"x", "n"}});
  for (int n = 0; n < 5; n++) f(Tensor{1.f, 1.f}, n);
  std::string said = f.explain();
  for (const char* part :
       {"1. f(x: f32[2]) -> f32[2], 1 calls\n", "why: first call\n", "why: argument n was i64 0, now i64 1\n",
        "most calls are traced: pass tensors in place of numbers"})
    EXPECT_TRUE(sdk_test::Has(said, part)) << part << " in\n" << said;
}

}  // namespace
