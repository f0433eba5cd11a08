// gradients_test.cc: gradients from C++: of a graph built in code, of a graph file, of gradients; errors.
#include <gtest/gtest.h>

#include <keel/keel.hpp>
#include <string>
#include <vector>

namespace {

struct GradientsTest : ::testing::Test {
  GradientsTest() { context.load_plugin(KEEL_TEST_PLUGINS "/keel-reference.so"); }

  keel::Array number(float v) { return keel::Array::of<float>(context, {}, std::vector<float>{v}); }
  float run(const keel::Module& module, const std::string& entry, float x) {
    keel::Options options;
    options.set("entry", entry);
    keel::Plan plan = keel::Session(module, "reference", options).prepare();
    return plan.run(std::vector{number(x)})[0].item<float>();
  }
  keel::Context context;
};

TEST_F(GradientsTest, OfAGraphByHand) {  // example Z7 (tests/rows): loss = w * w at w = 1
  keel::Module module(context);
  keel::Graph graph = module.graph("main");
  keel_value w = graph.param("w", KEEL_F32, {});
  keel_value loss = graph.node("mul", std::vector{w, w})[0];
  graph.result("dw", graph.gradient({&loss, 1}, {&w, 1})[0]);
  module.entry("main", graph);
  EXPECT_EQ(run(module, "main", 1), 2);
}

TEST_F(GradientsTest, OfAGraphOfAFileAndOfItsGradients) {
  keel::Module module =
      keel::Module::parse(context,
                          "keel 1\nfn @main(x: f32[]) -> f32[] {\n  y = x * x * x\n  return y\n}\n"
                          "entry main = @main\n");
  keel::Graph main = module.graph_of("");
  keel_value x = main.find("x"), y = main.find("y");
  keel::Graph first = main.copy("first"), second = main.copy("second");
  first.result("d", first.gradient({&y, 1}, {&x, 1})[0]);
  keel_value d = second.gradient({&y, 1}, {&x, 1})[0];
  second.result("dd", second.gradient({&d, 1}, {&x, 1})[0]);
  module.entry("first", first);
  module.entry("second", second);
  EXPECT_EQ(run(module, "main", 2), 8);
  EXPECT_EQ(run(module, "first", 2), 12);
  EXPECT_EQ(run(module, "second", 2), 12);
  EXPECT_EQ(run(module, "second", 3), 18);
}

TEST_F(GradientsTest, SeedsWeighTheYsAndWhatIsUnconnectedIsToldOrZeros) {
  keel::Module module(context);
  keel::Graph graph = module.graph("main");
  keel_value x = graph.param("x", KEEL_F32, {});
  keel_value ys[] = {graph.node("neg", {&x, 1})[0], graph.node("square", {&x, 1})[0]};
  keel_value seeds[] = {KEEL_NO_VALUE, graph.constant(number(10))};
  graph.result("dx", graph.gradient(ys, {&x, 1}, seeds)[0]);
  module.entry("main", graph);
  EXPECT_EQ(run(module, "main", 3), -1 + 10 * 6);
  keel_value other = graph.constant(number(7));
  EXPECT_EQ(graph.gradient(ys, {&other, 1})[0], KEEL_NO_VALUE);
  EXPECT_NE(graph.gradient(ys, {&other, 1}, {}, true)[0], KEEL_NO_VALUE);
  EXPECT_THROW(graph.gradient(ys, {&x, 1}, {seeds, 1}), keel::Error);
}

TEST_F(GradientsTest, ErrorsNameTheValue) {
  keel::Module module(context);
  keel::Graph graph = module.graph("main");
  keel_value i = graph.param("i", KEEL_I32, {});
  try {
    graph.gradient({&i, 1}, {&i, 1});
    FAIL() << "an integer has no gradient";
  } catch (const keel::Error& error) {
    EXPECT_EQ(error.code(), KEEL_INVALID);
    EXPECT_NE(std::string(error.what()).find("'i' is i32[]"), std::string::npos) << error.what();
  }
  keel_value out = 0;
  EXPECT_EQ(keel_graph_gradient(graph.get(), nullptr, 1, nullptr, &i, 1, 0, &out, nullptr), KEEL_INVALID);
  EXPECT_EQ(keel_graph_gradient(nullptr, &i, 1, nullptr, &i, 1, 0, &out, nullptr), KEEL_INVALID);
}

}  // namespace
