// save_test.cc: several functions in one file (save.hpp).
#include "devices.h"

#include <filesystem>
#include <map>

namespace {

using keel::Tensor;
using sdk_test::Failure;
using sdk_test::Has;

class Saves : public sdk_test::OnEachDevice {
 protected:
  Saves() : path(testing::TempDir() + "save" + std::to_string(getpid()) + GetParam() + ".keel") {}
  ~Saves() override { std::filesystem::remove(path); }
  keel::Module load() {
    context.scan_plugins();
    return keel::Module::load(context, path);
  }
  keel::Session session(const keel::Module& m, const std::string& entry) {
    return keel::Session(m, GetParam(), {{"entry", entry}});
  }
  keel::Context context;
  std::string path;
};
KEEL_ON_EACH_DEVICE(Saves);

keel::Module Parse(const std::string& text) { return keel::Module::parse(keel::default_context(), text); }

TEST_P(Saves, FunctionsBecomeEntriesOfOneFile) {
  auto twice = keel::function("f", [](const Tensor& x) { return x * 2; }, {.args = {"x"}});
  auto power = keel::function("f",
                              [](const Tensor& x, int n) {
                                Tensor y = x;
                                for (int i = 1; i < n; i++) y = y * x;
                                return y;
                              },
                              {.args = {"x", "n"}});
  Tensor x = {1.f, 3.f};
  keel::Module first = twice.concrete(x);
  first.add_case("three", "", {{x.array()}, {twice(x).array()}}, 0, 0);
  keel::save(path, {{"twice", first}, {"cube", power.concrete(x, 3)}});
  keel::Module loaded = load();
  EXPECT_EQ(session(loaded, "twice").run("v0", {{"x", x}}).values<float>(), (std::vector<float>{2, 6}));
  keel::Plan cube = session(loaded, "cube").prepare();
  EXPECT_EQ(Tensor(cube.run(std::vector{x.array()})[0]).values<float>(), (std::vector<float>{1, 27}));
  EXPECT_EQ(
      loaded.signatures(),
      "twice(x)\n  Args:\n    x: float32 Tensor, shape=(2,)\n  Returns:\n    float32 Tensor, shape=(2,)\n\n"
      "f(x, n=3)\n  Args:\n    x: float32 Tensor, shape=(2,)\n  Returns:\n    float32 Tensor, shape=(2,)\n");
  keel::Case kept = loaded.get_case(0, 1, 1);
  EXPECT_TRUE(same(Tensor(kept.in[0]), x));
  EXPECT_TRUE(Has(loaded.info(), "\"entry\":\"twice\"")) << loaded.info();
}

TEST_P(Saves, GradientsCanComeAlong) {
  auto loss = keel::function(
      "f", [](const Tensor& w, const Tensor& n) { return keel::reduce_sum(w * w) * keel::cast(n, KEEL_F32); },
      {.args = {"w", "n"}, .results = {"loss"}});
  auto count = keel::function("g", [](const Tensor& n) { return n + 1; });
  keel::save(path,
             {{"loss", loss.concrete(Tensor{1.f, 3.f}, Tensor(2))}, {"count", count.concrete(Tensor(2))}},
             {.gradients = true});
  keel::Module loaded = load();
  auto [value, dw] =
      session(loaded, "loss.gradient")
          .run(std::tuple{std::string("loss"), std::string("d_w")}, {{"w", {1., 3.}}, {"n", 2}});
  EXPECT_EQ(value.item<float>(), 20);
  EXPECT_EQ(dw.values<float>(), (std::vector<float>{4, 12}));
  EXPECT_TRUE(Has(Failure([&] { session(loaded, "count.gradient"); }), "count.gradient"));
}

TEST_P(Saves, VariablesAndConstantsAreShared) {
  const char* text =
      "keel 1\nvar w: f32[] = [5.0]\nfn @f(x: f32[]) {\n  y = read(w) * x\n  return y\n}\n"
      "fn @g(x: f32[]) {\n  assign(w, x)\n  return x\n}\nentry f = @f (x) -> (y)\nentry g = @g (x) -> (z)\n";
  keel::Module both = Parse(text);
  keel::Module joined(keel::default_context());
  joined.link(both, "f", "serve");
  joined.link(both, "g", "train");
  EXPECT_EQ(joined.text().find("var w"), joined.text().rfind("var w")) << joined.text();
  session(joined, "train").prepare().run(std::vector{Tensor(7.f).array()});
  EXPECT_EQ(session(joined, "serve").run("y", {{"x", 2}}).item<float>(), 14);
  Tensor weights = {1.f, 2.f, 3.f};
  auto f = keel::function("f", [&](const Tensor& x) { return x + weights; });
  auto g = keel::function("g", [&](const Tensor& x) { return x * weights; });
  Tensor x = {1.f, 1.f, 1.f};
  keel::Module one = keel::join({{"f", f.concrete(x)}, {"g", g.concrete(x)}});
  EXPECT_TRUE(Has(one.info(), "\"constants\":1,")) << one.info();
}

TEST_P(Saves, CallsDimsBodiesAndScopesAreCopied) {
  const char* text =
      "keel 1\nfn @body(a: f32[2*b, 3]) {\n  r = neg(a)\n  return r\n}\n"
      "fn @main(x: f32[2*b, 3]) {\n  y = call(x){body=@body}\n  z = reshape(y){to=[3, 2*b]} @\"cpu:0\"\n  "
      "return z\n}\n"
      "entry main = @main (x) -> (z)\n";
  keel::Module from = Parse(text), into = Parse(text);
  into.link(from, "", "again");
  keel::Module parsed = Parse(into.text());
  EXPECT_EQ(parsed.text(), into.text());
  EXPECT_TRUE(Has(into.text(), "@body_1") && Has(into.text(), "@main_1")) << into.text();
  if (GetParam() == "cpu") {
    EXPECT_EQ(session(into, "again").run("z", {{"x", keel::zeros({4, 3})}}).type(), "f32[3, 4]");
  }
}

TEST_P(Saves, WhatCannotBeLinkedIsToldAndLeavesNothing) {
  const char* variable =
      "keel 1\nvar w: f32[] = [5.0]\nfn @f() {\n  return read(w)\n}\nentry f = @f () -> (y)\n";
  keel::Module into = Parse(variable), other = Parse(variable);
  std::string before = into.text();
  EXPECT_TRUE(Has(Failure([&] { into.link(other, "", "g"); }), "variable 'w'"));
  EXPECT_EQ(into.text(), before);
  EXPECT_TRUE(Has(Failure([&] { into.link(other, "", "f"); }), "already has an entry 'f'"));
  EXPECT_TRUE(Has(Failure([&] { into.link(other, "h", "g"); }), "no entry 'h'"));
  EXPECT_TRUE(Has(Failure([&] { into.link(into, "f", "g"); }), "into itself"));
  EXPECT_TRUE(Has(Failure([&] { into.link(other, "f", ""); }), "name"));
  EXPECT_EQ(into.text(), before);
}

struct Layer {
  keel::Variable w, b;
};
struct Model {
  std::map<std::string, std::vector<Layer>> parts;
  keel::Variable shared;
  int steps = 0;
};
Model Make(float value) {
  keel::Variable w(Tensor{value, value}, {.name = "w"});
  return {{{"layers", {{w, keel::Variable(Tensor(value))}, {keel::Variable(Tensor(value)), w}}}}, w, 3};
}
TEST_P(Saves, ObjectsAreSavedByPath) {
  Model saved = Make(7), loaded = Make(1);
  std::string names;
  for (const auto& [name, variable] : keel::variables_of(saved)) names += name + " ";
  EXPECT_EQ(names, "0/layers/0/w 0/layers/0/1 0/layers/1/0 ");
  keel::save_checkpoint(path, saved);
  keel::load_checkpoint(path, loaded);
  EXPECT_EQ(Tensor(loaded.shared).values<float>(), (std::vector<float>{7, 7}));
  EXPECT_EQ(Tensor(loaded.parts["layers"][1].w).item<float>(), 7);
  loaded.parts["layers"].pop_back();
  keel::load_checkpoint(path, loaded);
  EXPECT_TRUE(Has(Failure([&] { keel::load_checkpoint(path, loaded.parts); }), "layers/0/w"));
}

TEST_P(Saves, VariablesOfAGraph) {
  keel::Variable w(Tensor{1.f, 2.f}, {.name = "w"});
  keel::Graph g;
  keel::GraphScope in(g);
  Tensor x = keel::placeholder(KEEL_F32, {}, "x"), y = w * x;
  w.assign_add(keel::constant({10., 10.}));
  keel::Session session(g, GetParam());
  EXPECT_EQ(session.run(y, {{x, 2}}).values<float>(), (std::vector<float>{2, 4}));
  session.run(g.node("assign_add"));
  EXPECT_EQ(session.run(y, {{x, 2}}).values<float>(), (std::vector<float>{22, 24}));
  EXPECT_EQ(w.read().values<float>()[0], 11) << "eager code shares it";
}

}  // namespace
