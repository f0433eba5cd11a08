// pass_body_test.cc: passes and the graphs that nodes run: their effects, reading them, building graphs from
// a part of one, bodies of ops, errors.
#include "tests/kernel/pass_helpers.h"

namespace keel::test {
namespace {

constexpr char kLoop[] =
    "const w: f32[2] = [1.0, 2.0]\n"
    "fn @main(x: f32[2], z: f32[2]) -> y: f32[2] {\n"
    "  y, s = scan(x, z){carry=1, invariants=1, length=3}\n"
    "    body(a, z) {\n      e = exp(z)\n      f = mul(e, w)\n      b = add(a, f)\n      yield b, e\n    }\n"
    "  return y\n}\nentry main = @main (x, z) -> (y)\n";

int64_t BodyNumber(const keel_host* h, keel_edit* e, uint32_t node) {
  keel_attr attr{};
  EXPECT_EQ(h->node_attr(h->edit_node(e, node), "body", &attr), KEEL_OK);
  return attr.i;
}

TEST_F(PassTest, TraitsOfNodesAreThoseOfTheCatalogue) {
  Parse(
      "fn @main(x: f32[2], y: f32[2]) -> f32[2], f32[2], f32[2], f32[2], f32[2] {\n  a = add(x, y)\n  s = "
      "sub(x, y)\n"
      "  e = exp(x)\n  l = leaky_relu(x){alpha=0.5}\n  r = reshape(e){to=[1, 2]}\n  t = reshape(r){to=[2]}\n"
      "  return a, s, e, l, t\n}\nentry main = @main (x, y)\n");
  Optimize([](const keel_host* h, keel_edit* e) {
    Reader r{h, e};
    auto traits = [&](const char* op) { return h->node_traits(h->edit_node(e, r.Nodes(op)[0])); };
    constexpr uint32_t kSpread = KEEL_TRAIT_ELEMENTWISE | KEEL_TRAIT_BROADCASTS;
    EXPECT_EQ(traits("add"), kSpread | KEEL_TRAIT_COMMUTATIVE);
    EXPECT_EQ(traits("sub"), kSpread);
    EXPECT_EQ(traits("exp"), uint32_t{KEEL_TRAIT_ELEMENTWISE});
    EXPECT_EQ(traits("leaky_relu"), uint32_t{KEEL_TRAIT_ELEMENTWISE | KEEL_TRAIT_ATTRIBUTES});
    EXPECT_EQ(traits("reshape") & (kSpread | KEEL_TRAIT_ALIAS | KEEL_TRAIT_ATTRIBUTES),
              uint32_t{KEEL_TRAIT_ALIAS | KEEL_TRAIT_ATTRIBUTES});
    return KEEL_OK;
  });
}

TEST_F(PassTest, EffectsOfNodesAndOfTheGraphsThatTheyRun) {
  Parse(
      "var v: f32[] = [1.0]\n"
      "fn @f(x: i32[], y: f32[]) -> i32[] {\n  r = read(v)\n  print(r)\n  d = div(x, x)\n  return d\n}\n"
      "fn @main(x: i32[], y: f32[]) -> i32[], f32[], i32[], f32[] {\n  r = read(v)\n  d = div(x, x)\n  c = "
      "call(x, y){body=@f}\n"
      "  q = div(y, y)\n  assign(v, y)\n  s = add(r, q)\n  return d, s, c, q\n}\nentry main = @main (x, "
      "y)\n");
  Optimize([](const keel_host* h, keel_edit* e) {
    Reader r{h, e};
    if (r.Nodes("call").empty()) return KEEL_OK;  // the body comes later
    EXPECT_EQ(h->edit_effects(e, r.Nodes("read")[0]), uint32_t{KEEL_READS});
    EXPECT_EQ(h->edit_effects(e, r.Nodes("assign")[0]), uint32_t{KEEL_MUST_RUN});
    EXPECT_EQ(h->edit_effects(e, r.Nodes("div")[0]), uint32_t{KEEL_MAY_FAIL});  // of integers
    EXPECT_EQ(h->edit_effects(e, r.Nodes("div")[1]), 0u);
    EXPECT_EQ(h->edit_effects(e, r.Nodes("call")[0]), uint32_t{KEEL_READS | KEEL_MUST_RUN | KEEL_MAY_FAIL});
    EXPECT_EQ(h->edit_effects(e, 12345), 0u);
    return KEEL_OK;
  });
}

TEST_F(PassTest, AGraphThatANodeRunsIsRead) {
  Parse(kLoop);
  std::string before = PrintText(*module_);
  std::string after = Optimize([](const keel_host* h, keel_edit* e) {
    Reader r{h, e};
    if (r.Nodes("scan").empty()) return KEEL_OK;
    keel_edit* body = nullptr;
    const keel_value *params = nullptr, *results = nullptr;
    EXPECT_EQ(h->edit_body(e, BodyNumber(h, e, r.Nodes("scan")[0]), &body, &params, &results), KEEL_OK);
    Reader inside{h, body};
    EXPECT_EQ(inside.Nodes().size(), 3u);
    EXPECT_EQ(inside.In(inside.Nodes("exp")[0], 0), params[1]);
    EXPECT_EQ(inside.In(inside.Nodes("add")[0], 0), params[0]);
    EXPECT_EQ(results[0], inside.Out(inside.Nodes("add")[0]));
    EXPECT_EQ(inside.Users(params[1]), inside.Nodes("exp"));
    EXPECT_EQ(h->edit_fetched(body, results[1]), 1);
    keel_tensor t{};
    EXPECT_EQ(h->value_type(body, inside.In(inside.Nodes("mul")[0], 1), &t), KEEL_OK);
    EXPECT_EQ(static_cast<const float*>(t.data)[1], 2.0f);
    // Bodies are read-only.
    keel_value out = 0;
    EXPECT_EQ(inside.AddNode("neg", {params[0]}, &out), KEEL_PRECONDITION);
    EXPECT_EQ(h->edit_replace(body, results[1], params[1]), KEEL_PRECONDITION);
    uint32_t exp = inside.Nodes("exp")[0];
    EXPECT_EQ(h->edit_outline(body, &exp, 1, "", nullptr), KEEL_PRECONDITION);
    int64_t made = 0;
    EXPECT_EQ(h->edit_graph(body, 0, params, params, 2, results, 2, &made), KEEL_PRECONDITION);
    t.ndim = 0;
    EXPECT_EQ(h->constant(body, nullptr, &t, nullptr, nullptr, &out), KEEL_PRECONDITION);
    for (int64_t none : {int64_t{-1}, int64_t{99}})
      EXPECT_EQ(h->edit_body(e, none, &body, nullptr, nullptr), KEEL_NOT_FOUND);
    return KEEL_OK;
  });
  EXPECT_EQ(after, before);
}

TEST_F(PassTest, APartOfAGraphIsAnotherGraph) {
  Parse(kLoop);
  std::string text = Optimize([](const keel_host* h, keel_edit* e) -> keel_rc {
    Reader r{h, e};
    if (r.Nodes("scan").empty()) return KEEL_OK;
    uint32_t scan = r.Nodes("scan")[0];
    int64_t number = BodyNumber(h, e, scan), made = 0;
    keel_edit* body = nullptr;
    const keel_value *params = nullptr, *results = nullptr;
    EXPECT_EQ(h->edit_body(e, number, &body, &params, &results), KEEL_OK);
    Reader inside{h, body};
    keel_value f = inside.Out(inside.Nodes("mul")[0]);
    keel_value from_f[] = {params[0], KEEL_NO_VALUE, f}, types[] = {0, r.In(scan, 1), 0};
    EXPECT_EQ(h->edit_graph(e, number, from_f, types, 3, results, 1, &made), KEEL_OK);
    keel_attr attrs[] = {{KEEL_ATTR_GRAPH, 0, made, 0, nullptr},
                         {KEEL_ATTR_I64, 0, 1, 0, nullptr},
                         {KEEL_ATTR_I64, 0, 2, 0, nullptr},
                         {KEEL_ATTR_DIM, 0, 3, 0, nullptr}};
    const char* names[] = {"body", "carry", "invariants", "length"};
    keel_value in[] = {r.In(scan, 0), r.In(scan, 1), r.In(scan, 1)}, out = 0;
    keel_node_spec spec{sizeof spec, 0, "scan", nullptr, in, names, attrs, 3, 4};
    EXPECT_EQ(h->edit_before(e, scan), KEEL_OK);
    EXPECT_EQ(h->add_node(e, &spec, &out, 1), KEEL_OK);
    // Invalid parts: a required parameter is missing, or values do not exist.
    EXPECT_EQ(h->edit_graph(e, number, from_f, types, 1, results, 1, &made), KEEL_INVALID);
    EXPECT_EQ(h->edit_graph(e, 99, from_f, types, 3, results, 1, &made), KEEL_NOT_FOUND);
    keel_value none = 999;
    EXPECT_EQ(h->edit_graph(e, number, &none, types, 1, results, 1, &made), KEEL_NOT_FOUND);
    EXPECT_EQ(h->edit_graph(e, number, params, types, 2, &none, 1, &made), KEEL_NOT_FOUND);
    keel_value no_type[] = {KEEL_NO_VALUE};
    EXPECT_EQ(h->edit_graph(e, number, no_type, &none, 1, results, 0, &made), KEEL_NOT_FOUND);
    return h->edit_replace(e, r.Out(scan), out);
  });
  EXPECT_EQ(Main(text),
            "  y = scan(x, z, z){carry=1, invariants=2, length=3}\n    body @main.y.body_1(a, p1, f) {\n"
            "      b = add(a, f) : f32[2]\n      yield b\n    } : f32[2]\n  return y\n");
}

TEST_F(PassTest, APassCannotAddGraphsVariablesRulesOrEntries) {
  Parse(kLoop);
  std::string before = PrintText(*module_);
  std::string after = Optimize([](const keel_host* h, keel_edit* e) {
    keel_edit* made = nullptr;
    int64_t graph = 0;
    uint32_t variable = 0;
    float one = 1;
    keel_tensor t{};
    t.data = &one;
    t.dtype = {2, 32, 1};
    t.device = {1, 0};
    EXPECT_EQ(h->edit_new_graph(e, "g", &made, &graph), KEEL_PRECONDITION);
    EXPECT_EQ(h->edit_variable(e, "v", &t, &variable), KEEL_PRECONDITION);
    EXPECT_EQ(h->edit_rule(e, "2 <= 3"), KEEL_PRECONDITION);
    EXPECT_EQ(h->edit_entry(e, "again"), KEEL_PRECONDITION);
    keel_value x = 0, dx = 0;
    EXPECT_EQ(h->edit_gradient(e, x, &x, 1, &dx), KEEL_PRECONDITION);
    return KEEL_OK;
  });
  EXPECT_EQ(after, before);
}

TEST_F(PassTest, BodiesOfOpsAreInlinedInPlans) {
  ASSERT_TRUE(Add("test", {{"test", KEEL_PHASE_LOWER}}).ok());
  Parse(
      "fn @main(x: f32[2, n], i: f32[n], k: f32[m]) {\n  y = einsum(x, i){x=[0, 1], y=[1], to=[0]}\n"
      "  z = einsum(x, k){x=[0, 1], y=[1], to=[0]}\n  return y, z\n}\n"
      "entry main = @main (x, i, k)\n");
  const auto inline_first = [](keel_rc wanted) {
    return [=](const keel_host* h, keel_edit* e) {
      Reader r{h, e};
      EXPECT_EQ(h->edit_inline(e, r.Nodes("einsum")[1]), KEEL_INVALID);  // n and m are compared in a run
      EXPECT_EQ(h->edit_inline(e, r.Nodes("einsum")[0]), wanted);
      return KEEL_OK;
    };
  };
  EXPECT_EQ(Optimize(inline_first(KEEL_INVALID)), PrintText(*module_)) << "a file keeps them";
  Bodies()[0] = inline_first(KEEL_OK);
  auto plan = MakePlan({graph_, device_, graph_->params, graph_->results, {}}, {}, {&passes_, {}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::string report = *(*plan)->Report({});
  for (const char* name : {R"("node":"y/matmul")", R"("node":"z/matmul")"})
    EXPECT_NE(report.find(name), std::string::npos) << report;
  EXPECT_NE(report.find(R"("edits":1)"), std::string::npos) << report;
}

// cumprod selects, with a constant; the constants of a call's body are its operands.
TEST_F(PassTest, BodiesOfOpsWithConstantsStayInBodiesOfCalls) {
  ASSERT_TRUE(Add("test", {{"test", KEEL_PHASE_LOWER}}).ok());
  Parse(
      "fn @f(x: f32[2]) {\n  a = cumprod(x)\n  return a\n}\n"
      "fn @main(x: f32[2]) {\n  y = call(x){body=@f}\n  t = tanh(y)\n  z = cumprod(t)\n  return z\n}\n"
      "entry main = @main (x)\n");
  keel_rc in_body = KEEL_OK, in_main = KEEL_INVALID;
  Bodies()[0] = [&](const keel_host* h, keel_edit* e) {
    Reader r{h, e};
    (r.Nodes("tanh").empty() ? in_body : in_main) = h->edit_inline(e, r.Nodes("cumprod").back());
    return KEEL_OK;
  };
  auto plan = MakePlan({graph_, device_, graph_->params, graph_->results, {}}, {}, {&passes_, {}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(in_body, KEEL_INVALID);
  EXPECT_EQ(in_main, KEEL_OK);
  EXPECT_EQ((*plan)->Report({})->find("FAILED"), std::string::npos);
}

}  // namespace
}  // namespace keel::test
