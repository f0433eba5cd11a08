// graph_test.cc: graphs built by C++ code and the sessions that run them (graph.hpp). Oracles: literals,
// eager runs.
#include "devices.h"

#include <sstream>
#include <thread>

namespace {

using keel::Tensor;
using sdk_test::Failure;
using sdk_test::Has;
using Ints = std::vector<int32_t>;
using Floats = std::vector<float>;

class Graphs : public sdk_test::OnEachDevice {
 protected:
  keel::Graph g;
};
KEEL_ON_EACH_DEVICE(Graphs);

std::string Text(const Tensor& t) {
  std::ostringstream out;
  out << t;
  return out.str();
}

TEST_P(Graphs, ConstantsAndOpsRunWhenASessionAsks) {
  keel::GraphScope in(g);
  Tensor a = keel::constant(3, "a"), b = keel::constant(5), c = a + b;
  EXPECT_TRUE(a.symbolic() && c.symbolic());
  EXPECT_EQ(c.type(), "i32[]");
  keel::Session session(g);
  EXPECT_EQ(session.run(c).item<int>(), 8);
  Tensor d = c * keel::constant({{1, 2}, {3, 4}});  // the graph grows; the session uses the new nodes
  EXPECT_EQ(session.run(d).values<int32_t>(), (Ints{8, 16, 24, 32}));
}

TEST_P(Graphs, NamesAreUnique) {
  keel::GraphScope in(g);
  Tensor first = keel::constant(1), second = keel::constant(2), sum = first + second, again = sum + first;
  keel::placeholder(KEEL_F32, {}), keel::placeholder(KEEL_F32, {});
  std::vector<std::string> names;
  for (const keel::Value& v : g.values()) names.push_back(v.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"const", "const_1", "add", "add_1", "placeholder", "placeholder_1"}));
  EXPECT_TRUE(Has(Failure([] { keel::constant(3, "const"); }), "already has a value 'const'"));
  EXPECT_TRUE(Has(Failure([] { keel::placeholder(KEEL_F32, {}, "add"); }), "already has a value 'add'"));
  EXPECT_TRUE(Has(Failure([&] { keel::named(sum, "add_1"); }), "already has a value 'add_1'"));
  keel::named(sum, "add_1", true);
  EXPECT_EQ(g.node("add_1_1").op, "add");
  EXPECT_EQ(g.values().size(), 6u) << "failures leave nothing behind";
  EXPECT_EQ(keel::Session(g).run("add_1").item<int>(), 4);
}

TEST_P(Graphs, ARenamedValueIsFoundByItsNewNameOnly) {
  keel::GraphScope in(g);
  Tensor sum = keel::constant(1) + keel::constant(2);
  keel::Session session(g);
  EXPECT_EQ(session.run("add").item<int>(), 3);
  keel::named(sum, "total");
  EXPECT_TRUE(Has(Failure([&] { session.run("add"); }), "has no value 'add'"));
  keel::named(sum * sum, "add");
  EXPECT_EQ(session.run("add").item<int>(), 9);
}

TEST_P(Graphs, NameScopes) {
  keel::GraphScope in(g);
  {
    keel::NameScope layer("layer1");
    Tensor w = keel::constant(2, "w");
    keel::NameScope inner("inner");
    w + w;
  }
  Tensor x = keel::constant(1, "w");
  EXPECT_EQ(g.node("layer1/inner/add").inputs, (std::vector<std::string>{"layer1/w", "layer1/w"}));
  EXPECT_EQ(g.node("w").op, "constant");
}

TEST_P(Graphs, LookUpByName) {
  keel::GraphScope in(g);
  Tensor x = keel::placeholder(KEEL_F32, {4}, "x");
  std::vector<Tensor> parts = keel::split(x, {1, 3});
  EXPECT_EQ(g.node("split").outputs.size(), 2u);
  EXPECT_EQ(g.node("split:1").name, "split");
  EXPECT_EQ(g.node("x").op, "parameter");
  EXPECT_EQ(g.value("split:1").type(), "f32[3]");
  EXPECT_EQ(g.value("x:0").type(), "f32[4]");
  keel::Session session(g);
  EXPECT_EQ(session.run("split:1", {{"x:0", {1, 2, 3, 4}}}).values<float>(), (Floats{2, 3, 4}));
  for (const char* bad : {"split:2", "x:1", "split:", "split:01", "split:-1", "x:0:0", ":0", "y"})
    EXPECT_TRUE(Has(Failure([&] { g.value(bad); }), std::string("has no value '") + bad + "'")) << bad;
}

TEST_P(Graphs, NodesAndValuesAreListed) {
  keel::GraphScope in(g);
  Tensor x = keel::placeholder(KEEL_F32, {-1, 2}, "x"), y = keel::named(x + 1, "y"), z = keel::relu(y);
  std::vector<keel::Node> nodes = g.nodes();
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].name + nodes[0].op, "yadd");
  EXPECT_EQ(nodes[0].inputs[0], "x");
  EXPECT_EQ(nodes[1].op, "relu");
  EXPECT_EQ(nodes[1].inputs, (std::vector<std::string>{"y"}));
  EXPECT_EQ(nodes[1].outputs, (std::vector<std::string>{"relu"}));
  keel::Value value = g.values().front();
  EXPECT_EQ(value.name, "x");
  EXPECT_EQ(value.dtype, KEEL_F32);
  EXPECT_EQ(value.shape, (std::vector<int64_t>{-1, 2}));
  EXPECT_EQ(g.ports(false).size(), 1u);
  EXPECT_EQ(g.ports(false)[0].first, "x");
}

TEST_P(Graphs, AnyValueCanBeFed) {
  keel::GraphScope in(g);
  Tensor a = keel::constant(3), b = keel::constant(5), c = a + b, d = c * 2;
  keel::Session session(g);
  EXPECT_EQ(session.run(d, {{c, 7}}).item<int>(), 14);
  EXPECT_EQ(session.run(c, {{c, 7}}).item<int>(), 7);
  EXPECT_EQ(session.run(d, {{a, 10}}).item<int>(), 30);
  EXPECT_EQ(session.run(d, {{"add:0", 1}}).item<int>(), 2);
  EXPECT_TRUE(Has(Failure([&] { session.run(d, {{c, 7}, {"add", 7}}); }), "is fed twice"));
}

TEST_P(Graphs, FetchesAreOfAnyStructure) {
  keel::GraphScope in(g);
  Tensor a = keel::constant(3, "a"), b = keel::constant(5, "b"), c = keel::named(a + b, "c");
  keel::Session session(g);
  auto [x, pair] = session.run(std::tuple{a, std::pair{b, std::string("c")}});
  EXPECT_EQ(Text(x) + Text(std::get<0>(pair)) + Text(std::get<1>(pair)), "358");
  std::map<std::string, std::vector<Tensor>> wanted{{"one", {a}}, {"two", {c, c}}};
  std::map<std::string, std::vector<Tensor>> got = session.run(wanted);
  EXPECT_EQ(got["one"].size(), 1u);
  EXPECT_EQ(got["two"][1].item<int>(), 8);
  auto [none, value] = session.run(std::tuple{g.node("c"), std::string("b")});
  static_assert(std::same_as<decltype(none), keel::None>);
  EXPECT_EQ(value.item<int>(), 5);
  session.run(g.node("c"));
  EXPECT_TRUE(session.run(std::vector<Tensor>{}).empty());
}

void Print(const Tensor& a) {
  keel::Operand operand(a);
  const keel::Operand* in[] = {&operand};
  keel::detail::Attributes at;
  at.text("format", "a is {}");
  keel::detail::apply(keel::OpId::print, keel::detail::In(in), at, {}, keel::Place::current());
}

TEST_P(Graphs, EffectsRunWhereTheyAreTargets) {
  static std::string printed;
  printed.clear();
  keel::default_context().print_to(
      [](void*, int32_t, const char* text, uint64_t n) { printed.append(text, n); }, nullptr);
  {
    keel::GraphScope in(g);
    Tensor a = keel::constant(3, "a");
    Print(a);
    keel::Session session(g);
    session.run(a);
    EXPECT_EQ(printed, "");
    session.run(g.node("print"));
    EXPECT_EQ(printed, "a is 3\n");
    session.run(a, {}, {"print"});
    EXPECT_EQ(printed, "a is 3\na is 3\n");
  }
  keel::default_context().print_to(nullptr, nullptr);
}

TEST_P(Graphs, FeedsAreCastWithinTheirKind) {
  keel::GraphScope in(g);
  const keel_dt dtypes[] = {KEEL_BOOL, KEEL_U8, KEEL_U64, KEEL_I8, KEEL_I64, KEEL_F16, KEEL_F32, KEEL_F64};
  const bool numpy[8][8] = {// from, to: np.can_cast(from, to, "same_kind")
                            {1, 1, 1, 1, 1, 1, 1, 1}, {0, 1, 1, 1, 1, 1, 1, 1}, {0, 1, 1, 1, 1, 1, 1, 1},
                            {0, 0, 0, 1, 1, 1, 1, 1}, {0, 0, 0, 1, 1, 1, 1, 1}, {0, 0, 0, 0, 0, 1, 1, 1},
                            {0, 0, 0, 0, 0, 1, 1, 1}, {0, 0, 0, 0, 0, 1, 1, 1}};
  keel::Session session(g), exact(g, "", {{"feeds", "exact"}});
  for (int to = 0; to < 8; to++) {
    Tensor x = keel::placeholder(dtypes[to], {2}), y = keel::identity(x);
    for (int from = 0; from < 8; from++) {
      Tensor value = from ? keel::tensor({0, 1}, dtypes[from]) : Tensor{false, true};
      std::string failure = Failure([&] { EXPECT_EQ(session.run(y, {{x, value}}).dtype(), dtypes[to]); });
      EXPECT_EQ(failure.empty(), numpy[from][to]) << from << " to " << to << ": " << failure;
      EXPECT_EQ(Failure([&] { exact.run(y, {{x, value}}); }).empty(), from == to);
    }
  }
  Tensor x = keel::placeholder(KEEL_F32, {}, "x");
  EXPECT_EQ(session.run(x, {{"x", 0.1}}).item<float>(), 0.1f);
  EXPECT_EQ(session.run(x, {{x, Tensor(std::vector<double>{1e-3}, {})}}).item<float>(), 1e-3f);
  EXPECT_TRUE(Has(Failure([&] { keel::Session(g, "", {{"feeds", "some"}}); }), "expected cast or exact"));
}

TEST_P(Graphs, WrongFeedsAreToldByName) {
  keel::GraphScope in(g);
  Tensor x = keel::placeholder(KEEL_F32, {4, 4}, "x"), y = keel::matmul(x, x);
  keel::Session session(g);
  EXPECT_EQ(Failure([&] { session.run(y); }),
            "You must feed a value for parameter \"x\", which is f32[4, 4]");
  EXPECT_TRUE(Has(Failure([&] {
                    session.run(y, {{x, keel::zeros({3, 3})}});
                  }),
                  "Cannot feed value of shape [3, 3] for \"x\", which is f32[4, 4]"));
  EXPECT_TRUE(Has(Failure([&] { session.run(y, {{"z", 1}}); }), "has no value 'z'"));
  EXPECT_TRUE(Has(Failure([&] { session.run("w", {{x, keel::zeros({4, 4})}}); }), "has no value 'w'"));
  EXPECT_TRUE(Has(Failure([&] { session.run(Tensor(3)); }), "does not belong to the trace"));
  EXPECT_TRUE(Has(Failure([&] { session.run(y, {{x, y}}); }), "x"));
  keel::Graph other;
  keel::GraphScope there(other);
  Tensor z = keel::constant(1);
  EXPECT_TRUE(Has(Failure([&] { session.run(z); }), "does not belong to the trace"));
  EXPECT_TRUE(Has(Failure([&] { x + z; }), "operands belong to two traces"));
}

TEST_P(Graphs, UnknownSizesAreToldByFeeds) {
  keel::GraphScope in(g);
  Tensor x = keel::placeholder(KEEL_F32, {-1, "n"}, "x"), w = keel::placeholder(KEEL_F32, {"n", 2}, "w");
  Tensor y = keel::matmul(x, w);
  keel::Session session(g);
  EXPECT_EQ(session.run(y, {{x, keel::zeros({5, 3})}, {w, keel::zeros({3, 2})}}).type(), "f32[5, 2]");
  EXPECT_TRUE(Has(Failure([&] {
                    session.run(y, {{x, keel::zeros({5, 3})}, {w, keel::zeros({4, 2})}});
                  }),
                  "n"));
}

TEST_P(Graphs, PlaceholdersNeedAGraph) {
  std::string said = Failure([] { keel::placeholder(KEEL_F32, {2}); });
  EXPECT_TRUE(said.starts_with("keel::placeholder() is not compatible with eager execution. (graph_test.cc:"))
      << said;
  auto f = keel::function("f", [](const Tensor& x) { return x + keel::placeholder(KEEL_F32, {}); });
  EXPECT_TRUE(Has(Failure([&] { f(Tensor(1)); }), "keel::placeholder() is not compatible"));
}

TEST_P(Graphs, FunctionsAreWrittenIntoTheGraph) {
  auto f = keel::function("f", [](const Tensor& x) { return keel::relu(x) * 2; });
  keel::GraphScope in(g);
  Tensor x = keel::placeholder(KEEL_F32, {2}, "x"), y = f(x);
  EXPECT_EQ(keel::Session(g).run(y, {{x, {-1., 3.}}}).values<float>(), (Floats{0, 6}));
  EXPECT_EQ(f.trace_count(), 0);
}

TEST_P(Graphs, DefaultsAreStacks) {
  EXPECT_TRUE(keel::executing_eagerly());
  EXPECT_TRUE(Has(Failure([] { keel::default_graph(); }), "there is no default graph"));
  EXPECT_TRUE(Has(Failure([] { keel::Session s; }), "there is no default graph"));
  keel::Graph other;
  keel::GraphScope in(g);
  EXPECT_FALSE(keel::executing_eagerly());
  Tensor a = keel::constant(3);
  EXPECT_TRUE(Has(Failure([&] { keel::eval(a); }), "no default session"));
  {
    keel::GraphScope inner(other);
    EXPECT_EQ(keel::default_graph().get(), other.get());
    keel::InteractiveSession session;
    Tensor b = keel::constant(4);
    EXPECT_EQ(keel::eval(b).item<int>(), 4);
    {
      keel::Session outer(g);
      keel::SessionScope use(outer);
      EXPECT_EQ(keel::eval(a).item<int>(), 3);
    }
    EXPECT_EQ(keel::eval(b + b, {{b, 5}}).item<int>(), 10);
  }
  EXPECT_EQ(keel::default_graph().get(), g.get());
  EXPECT_TRUE(Has(Failure([&] { keel::eval(a); }), "no default session"));
  std::thread([&] { EXPECT_TRUE(keel::executing_eagerly()) << "each thread has its own"; }).join();
}

TEST_P(Graphs, DeviceScopesStayWithTheNodes) {
  keel::GraphScope in(g);
  Tensor x = keel::placeholder(KEEL_F32, {}, "x"), y;
  {
    keel::Scope there = keel::device("reference");
    y = x + 1;
  }
  Tensor z = y * 2;
  bool scoped = GetParam() != "reference";
  EXPECT_EQ(Has(g.module().text(), "@\"reference:0\"") || Has(g.module().text(), "@reference:0"), scoped)
      << g.module().text();
  EXPECT_EQ(keel::Session(g).run(z, {{x, 3}}).item<float>(), 8);
}

TEST_P(Graphs, ASessionRunsOnManyThreads) {
  keel::GraphScope in(g);
  Tensor x = keel::placeholder(KEEL_I32, {}, "x"), y = x * x;
  keel::Session session(g);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; t++)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; i++)
        wrong += session.run("mul", {{"x", t + i}}).item<int>() != (t + i) * (t + i);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(Graphs, WhatLivesLongerKeepsTheGraph) {
  std::unique_ptr<keel::Session> session;
  Tensor y;
  {
    keel::Graph gone;
    keel::GraphScope in(gone);
    y = keel::constant(6) * 7;
    session = std::make_unique<keel::Session>(gone);
  }
  EXPECT_EQ(session->run(y).item<int>(), 42);
}

TEST_P(Graphs, AGraphCanBeSaved) {
  std::string path = testing::TempDir() + "graph" + std::to_string(getpid()) + GetParam() + ".keel";
  {
    keel::GraphScope in(g);
    Tensor x = keel::placeholder(KEEL_F32, {2}, "x");
    g.result("y", keel::relu(x - 1));
    g.module().save(path);
  }
  keel::Module loaded = keel::Module::load(keel::default_context(), path);
  unlink(path.c_str());
  keel::Session session(loaded, GetParam());
  EXPECT_EQ(session.run("y", {{"x", {0., 3.}}}).values<float>(), (Floats{0, 2}));
  EXPECT_TRUE(Has(Failure([&] { session.run(Tensor(1)); }), "by name"));
}

TEST_P(Graphs, EagerNamesMeanNothing) {
  Tensor a = keel::constant(3, "const"), b = keel::constant(4, "const");
  EXPECT_EQ((keel::named(a + b, "const")).item<int>(), 7);
  EXPECT_EQ(keel::constant(3, "x", KEEL_F64).dtype(), KEEL_F64);
}

}  // namespace
