// pass_test.cc: the pass interface: selection and order of passes, rollback of a faulty pass, and each edit:
// its effect and its errors. Oracles are texts.
#include "tests/kernel/pass_helpers.h"

namespace keel::test {
namespace {

constexpr char kChain[] =
    "fn @main(x: f32[2]) -> y: f32[2] {\n  a = neg(x)\n  b = relu(a)\n  y = exp(b)\n  return y\n}\n"
    "entry main = @main (x) -> (y)\n";

std::vector<std::string> Names(const std::vector<Pass>& passes) {
  std::vector<std::string> names;
  for (const Pass& p : passes) names.emplace_back(p.table.name);
  return names;
}

TEST_F(PassTest, OrderIsByPhaseThenByWish) {
  ASSERT_TRUE(
      Add("p", {{"late", KEEL_PHASE_LOWER}, {"b"}, {"c", 100, 1, 0, nullptr, "b"}, {"a", 100, 1, 0, "b"}})
          .ok());
  ASSERT_TRUE(Add("q", {{"first", 100, 1, 0, nullptr, "c absent"}}).ok());
  EXPECT_EQ(Names(registry_.Passes()), (std::vector<std::string>{"first", "c", "b", "a", "late"}));
}

TEST_F(PassTest, CyclesAndTakenNamesAreRefusedAtLoad) {
  ASSERT_TRUE(Add("p", {{"a", 100, 1, 0, "b"}}).ok());
  absl::Status cycle = Add("q", {{"b", 100, 1, 0, "a"}});
  EXPECT_NE(cycle.message().find("a before b before a"), std::string::npos) << cycle;
  absl::Status taken = Add("r", {{"a"}});
  EXPECT_NE(taken.message().find("\"a\" is already defined by plugin \"p\""), std::string::npos) << taken;
  EXPECT_EQ(Names(registry_.Passes()), std::vector<std::string>{"a"});
  absl::Status level = Add("s", {{"z", 100, 4}});
  EXPECT_NE(level.message().find("level 4, expected 1 to 3"), std::string::npos) << level;
}

TEST_F(PassTest, LevelAndNamesChoose) {
  ASSERT_TRUE(Add("p", {{"one"}, {"two", 100, 2}, {"fast", 100, 1, KEEL_FAST}}).ok());
  Parse(kChain);
  auto ran = [&](PassChoice choice) {
    Optimize(nullptr, choice);
    std::vector<std::string> names;
    for (const PassRun& run : report_.runs) names.push_back(run.name);
    return names;
  };
  auto level = [](int32_t n) { return PassChoice{n, true, {}, {}, {}}; };
  auto named = [](const char* text) {
    PassChoice choice;
    EXPECT_TRUE(ParsePasses(text, &choice).ok());
    return choice;
  };
  using L = std::vector<std::string>;
  EXPECT_EQ(ran(level(0)), L{});
  EXPECT_EQ(ran(level(1)), L{"one"});
  EXPECT_EQ(ran({}), (L{"one", "two"}));
  EXPECT_EQ(ran(level(3)), (L{"one", "two", "fast"}));
  EXPECT_EQ(ran(named("-one,+fast")), (L{"two", "fast"}));
  EXPECT_EQ(ran(named("fast,one")), (L{"one", "fast"}));
  PassChoice mixed;
  EXPECT_FALSE(ParsePasses("one,-two", &mixed).ok());
  auto unknown = passes_.Run({nullptr, graph_, {}, {}, {}, {}, false}, {device_, {}}, named("oen"), &report_);
  EXPECT_NE(unknown.status().message().find("no pass is named \"oen\"; the passes are one, two, fast"),
            std::string::npos)
      << unknown.status();
}

TEST_F(PassTest, ReplaceMovesUsesAndDropsWhatNobodyNeeds) {
  Parse(kChain);
  std::string text = Optimize([](const keel_host* h, keel_edit* e) {
    Reader r{h, e};
    uint32_t relu = r.Nodes("relu")[0], neg = r.Nodes("neg")[0];
    EXPECT_EQ(h->edit_replace(e, r.Out(relu), r.Out(neg)), KEEL_OK);
    EXPECT_EQ(h->edit_node(e, relu), nullptr);
    EXPECT_EQ(r.Users(r.Out(neg)), r.Nodes("exp"));
    return KEEL_OK;
  });
  EXPECT_EQ(Main(text), "  a = neg(x) : f32[2]\n  y = exp(a) : f32[2]\n  return y\n");
  ASSERT_EQ(report_.runs.size(), 1u);
  EXPECT_EQ(report_.runs[0].edits, 1u);
  EXPECT_GT(report_.runs[0].ms, 0);
  EXPECT_NE(PrintText(*module_).find("relu"), std::string::npos) << "the module itself must not change";
}

TEST_F(PassTest, FetchedNamesPassOn) {
  Parse(kChain);
  std::string text = Optimize([](const keel_host* h, keel_edit* e) {
    Reader r{h, e};
    uint32_t exp = r.Nodes("exp")[0];
    EXPECT_EQ(h->edit_fetched(e, r.Out(exp)), 1);
    EXPECT_EQ(h->edit_fetched(e, r.In(exp, 0)), 0);
    keel_value v = 0;
    EXPECT_EQ(h->edit_before(e, exp), KEEL_OK);
    EXPECT_EQ(r.AddNode("square", {r.In(exp, 0)}, &v, "a"), KEEL_OK);  // taken name: a suffix is added
    return h->edit_replace(e, r.Out(exp), v);
  });
  EXPECT_EQ(Main(text),
            "  a = neg(x) : f32[2]\n  b = relu(a) : f32[2]\n  y = square(b) : f32[2]\n  return y\n");
  // Replaced by a parameter: the result keeps its name, the value its own.
  text = Optimize([](const keel_host* h, keel_edit* e) {
    Reader r{h, e};
    return h->edit_replace(e, r.Out(r.Nodes("exp")[0]), r.In(r.Nodes("neg")[0], 0));
  });
  EXPECT_NE(text.find("fn @main(x: f32[2]) -> y: f32[2] {\n  return x\n}"), std::string::npos) << text;
}

TEST_F(PassTest, EditsAreCheckedAtTheCall) {
  Parse(
      "fn @main(x: f32[2], z: f32[3]) -> f32[2], f32[3] {\n  a = neg(x)\n  y = exp(a)\n  w = neg(z)\n  "
      "return y, w\n}\n"
      "entry main = @main (x, z)\n");
  Optimize([&](const keel_host* h, keel_edit* e) {
    Reader r{h, e};
    uint32_t neg = r.Nodes("neg")[0], exp = r.Nodes("exp")[0];
    keel_value v = 0, a = r.Out(neg), y = r.Out(exp);
    EXPECT_EQ(h->edit_replace(e, a, 999), KEEL_NOT_FOUND);
    EXPECT_EQ(h->edit_replace(e, 999, a), KEEL_NOT_FOUND);
    EXPECT_EQ(h->edit_replace(e, y, r.Out(r.Nodes("neg")[1])), KEEL_INVALID);  // another type
    EXPECT_EQ(h->edit_replace(e, a, y), KEEL_INVALID);                         // y needs a
    EXPECT_EQ(h->edit_before(e, 999), KEEL_NOT_FOUND);
    EXPECT_EQ(h->edit_before(e, neg), KEEL_OK);
    EXPECT_EQ(r.AddNode("relu", {a}, &v), KEEL_INVALID);  // a comes later
    EXPECT_EQ(r.AddNode("nosuch", {a}, &v), KEEL_NOT_FOUND);
    EXPECT_EQ(r.AddNode("relu", {12345}, &v), KEEL_NOT_FOUND);
    EXPECT_EQ(h->edit_outline(e, &exp, 0, "g", nullptr), KEEL_INVALID);
    EXPECT_EQ(h->edit_inline(e, exp), KEEL_INVALID);
    EXPECT_EQ(h->edit_eval(e, exp), KEEL_PRECONDITION);
    EXPECT_EQ(h->edit_node(e, 999), nullptr);
    EXPECT_EQ(h->edit_operands(e, 999, nullptr, nullptr, nullptr, nullptr), KEEL_NOT_FOUND);
    EXPECT_TRUE(r.Users(999).empty());
    EXPECT_EQ(h->edit_producer(e, r.In(neg, 0)), KEEL_NO_VALUE);
    EXPECT_EQ(h->edit_producer(e, a), neg);
    EXPECT_EQ(h->result(e, "r", a), KEEL_PRECONDITION);
    EXPECT_EQ(h->metadata(e, "k", "v"), KEEL_PRECONDITION);
    EXPECT_EQ(h->param(e, "p", KEEL_F32, nullptr, 0, &v), KEEL_PRECONDITION);
    EXPECT_STREQ(h->edit_device(e), "reference:0");
    return KEEL_OK;
  });
  EXPECT_EQ(report_.runs[0].edits, 0u);
  EXPECT_EQ(report_.runs[0].error, "");
}

TEST_F(PassTest, AFailingPassIsRolledBackAndSwitchedOff) {
  Parse(kChain);
  std::string before = PrintText(*module_);
  auto faulty = [](const keel_host* h, keel_edit* e) {
    Reader r{h, e};
    EXPECT_EQ(h->edit_replace(e, r.Out(r.Nodes("relu")[0]), r.Out(r.Nodes("neg")[0])), KEEL_OK);
    return h->fail(KEEL_INTERNAL, "lost the thread");
  };
  EXPECT_EQ(Optimize(faulty), before);
  ASSERT_EQ(report_.runs.size(), 1u);
  EXPECT_EQ(report_.runs[0].error, "lost the thread");
  EXPECT_EQ(report_.runs[0].diff,
            "-  b = relu(a) : f32[2]\n-  y = exp(b) : f32[2]\n+  y = exp(a) : f32[2]\n");
  Optimize([](const keel_host*, keel_edit*) -> keel_rc {
    ADD_FAILURE() << "ran though it was switched off";
    return KEEL_OK;
  });
  EXPECT_NE(report_.runs[0].skipped.find("lost the thread"), std::string::npos);
}

TEST_F(PassTest, ABadResultIsRolledBack) {
  Parse(kChain);
  std::string before = PrintText(*module_);
  std::string after = Optimize([](const keel_host* h, keel_edit* e) {
    Reader r{h, e};
    keel_value v = 0;
    EXPECT_EQ(r.AddNode("relu", {r.Out(r.Nodes("neg")[0])}, &v), KEEL_OK);
    EXPECT_EQ(h->edit_replace(e, r.Out(r.Nodes("exp")[0]), v), KEEL_OK);
    e->graph->values[v].type.dims[0] = 7;  // invalid: no member function would do this
    return KEEL_OK;
  });
  EXPECT_EQ(after, before);
  EXPECT_NE(report_.runs[0].error.find("f32[7]"), std::string::npos) << report_.runs[0].error;
  EXPECT_NE(report_.runs[0].diff.find("+"), std::string::npos);
  EXPECT_NE(passes_.Disabled("test"), "");
}

TEST_F(PassTest, OutlineAndInlineAreInverse) {
  Parse(
      "const w: f32[2] = [1.0, 2.0]\n\n"
      "fn @main(x: f32[2]) -> y: f32[2], f32[2] {\n  a = add(x, w)\n  b = relu(a)\n  y = mul(b, 2.0)\n  z = "
      "neg(b)\n  return y, z\n}\n"
      "entry main = @main (x) -> (y, _)\n");
  std::string before = PrintText(*module_), outlined;
  auto outline = [](const keel_host* h, keel_edit* e) {
    Reader r{h, e};
    std::vector<uint32_t> group = r.Nodes();
    group.pop_back();  // not z
    uint32_t call = 0;
    EXPECT_EQ(h->edit_outline(e, group.data(), 3, "fused", &call), KEEL_OK);
    keel_body body{};
    body.struct_size = sizeof body;
    EXPECT_EQ(h->node_body(h->edit_node(e, call), &body), KEEL_OK);
    EXPECT_EQ(body.n_nodes, 3u);
    EXPECT_EQ(body.n_values, 6u);
    EXPECT_STREQ(h->node_op(body.nodes[1].node), "relu");
    EXPECT_EQ(body.nodes[1].in[0], 3u);
    EXPECT_EQ(body.nodes[2].in[1], 2u);
    EXPECT_EQ(h->node_body(h->edit_node(e, r.Nodes("neg")[0]), &body), KEEL_NOT_FOUND);
    return KEEL_OK;
  };
  outlined = Optimize(outline);
  EXPECT_NE(outlined.find("fn @fused(x: f32[2], w: f32[2], p2: f32[]) -> f32[2], f32[2] {\n"
                          "  a = add(x, w) : f32[2]\n  b = relu(a) : f32[2]\n  y = mul(b, p2) : f32[2]\n"
                          "  return b, y\n}"),
            std::string::npos)
      << outlined;
  EXPECT_EQ(Main(outlined),
            "  b, y = call(x, w, 2.0){body=@fused} : f32[2], f32[2]\n  z = neg(b) : f32[2]\n  return y, z\n");
  std::string both = Optimize([&](const keel_host* h, keel_edit* e) {
    EXPECT_EQ(outline(h, e), KEEL_OK);
    return h->edit_inline(e, Reader{h, e}.Nodes("call")[0]);
  });
  EXPECT_EQ(both, before);
}

TEST_F(PassTest, OutlineRefusesWhatIsNotConvexAndMovesWhatCanMove) {
  Parse(
      "fn @main(x: f32[2]) -> y: f32[2], f32[2] {\n  a = neg(x)\n  o = exp(a)\n  b = relu(x)\n  c = add(a, "
      "b)\n  y = mul(c, o)\n  return y, o\n}\n"
      "entry main = @main (x) -> (y, _)\n");
  std::string text = Optimize([](const keel_host* h, keel_edit* e) {
    Reader r{h, e};
    std::vector<uint32_t> n = r.Nodes();
    uint32_t bad[] = {n[0], n[4]};  // a and y, with o between them
    EXPECT_EQ(h->edit_outline(e, bad, 2, "bad", nullptr), KEEL_INVALID);
    uint32_t twice[] = {n[0], n[0]};
    EXPECT_EQ(h->edit_outline(e, twice, 2, "bad", nullptr), KEEL_INVALID);
    uint32_t good[] = {n[3], n[0], n[2]};  // c, a, b: o reads a and moves after it
    return h->edit_outline(e, good, 3, nullptr, nullptr);
  });
  EXPECT_EQ(Main(text),
            "  a, c = call(x){body=@body} : f32[2], f32[2]\n  o = exp(a) : f32[2]\n"
            "  y = mul(c, o) : f32[2]\n  return y, o\n");
}

TEST_F(PassTest, EvalPutsConstants) {
  Parse(
      "const w: f32[2] = [1.0, 2.0]\n\nfn @main(x: f32[2]) -> y: f32[2] {\n  k = add(w, w)\n  y = add(x, "
      "k)\n  return y\n}\n"
      "entry main = @main (x) -> (y)\n");
  std::string text = Optimize([](const keel_host* h, keel_edit* e) {
    return h->edit_eval(e, Reader{h, e}.Nodes("add")[0]);
  });
  EXPECT_NE(text.find("const k_folded: f32[2] = [2.0, 4.0]"), std::string::npos) << text;
  EXPECT_EQ(text.find("const w"), std::string::npos) << "unused constant";
  EXPECT_EQ(Main(text), "  y = add(x, k_folded) : f32[2]\n  return y\n");
}

TEST_F(PassTest, EffectsStay) {
  ASSERT_TRUE(Add("test", {{"test", KEEL_PHASE_LOWER}},
                  "opset t 1\nop t.tell since 1  in x: T[P..]  out y: T[P..]  type T: any  effect io\n")
                  .ok());
  Parse(
      "fn @main(x: f32[2]) -> y: f32[2] {\n  a = neg(x)\n  t = t.tell(a)\n  y = exp(a)\n  return y\n}\n"
      "entry main = @main (x) -> (y)\n");
  std::string text = Optimize([](const keel_host* h, keel_edit* e) {
    Reader r{h, e};
    keel_value v = 0;
    EXPECT_EQ(r.AddNode("t.tell", {r.In(r.Nodes("neg")[0], 0)}, &v), KEEL_INVALID);
    uint32_t group[] = {r.Nodes("neg")[0], r.Nodes("t.tell")[0]};
    EXPECT_EQ(h->edit_outline(e, group, 2, "g", nullptr), KEEL_INVALID);
    uint32_t around[] = {r.Nodes("neg")[0], r.Nodes("exp")[0]};  // the effect would move
    EXPECT_EQ(h->edit_outline(e, around, 2, "g", nullptr), KEEL_INVALID);
    return h->edit_replace(e, r.Out(r.Nodes("exp")[0]), r.In(r.Nodes("neg")[0], 0));
  });
  EXPECT_EQ(Main(text), "  a = neg(x) : f32[2]\n  t = t.tell(a) : f32[2]\n  return x\n");
}

TEST_F(PassTest, ReadsStayOnTheirSideOfWrites) {
  Parse(
      "var w: f32[2] = [1.0, 2.0]\nvar u: f32[2] = [1.0, 2.0]\nconst c: f32[2] = [0.0, 0.0]\n"
      "fn @main(x: f32[2]) -> f32[2], f32[2], f32[2] {\n  a = read(w)\n  assign(u, x)\n  b = read(w)\n"
      "  assign_add(w, x)\n  d = read(w)\n  p = add(a, b)\n  q = add(b, d)\n  e = add(d, c)\n"
      "  return p, q, e\n}\nentry main = @main (x) -> (_, _, _)\n");
  std::string text = Optimize([](const keel_host* h, keel_edit* e) {
    Reader r{h, e};
    std::vector<uint32_t> reads = r.Nodes("read");
    keel_value v = 0;
    EXPECT_EQ(h->edit_replace(e, r.Out(reads[2]), r.Out(reads[1])), KEEL_INVALID) << "w was written";
    EXPECT_EQ(h->edit_replace(e, r.Out(reads[0]), r.In(r.Nodes("add")[2], 1)), KEEL_INVALID) << "no constant";
    EXPECT_EQ(h->edit_eval(e, reads[0]), KEEL_PRECONDITION);
    EXPECT_EQ(r.AddNode("read", {}, &v), KEEL_INVALID);
    EXPECT_EQ(h->edit_outline(e, &reads[1], 1, "g", nullptr), KEEL_INVALID);
    return h->edit_replace(e, r.Out(reads[1]), r.Out(reads[0]));  // only u was assigned
  });
  EXPECT_EQ(
      Main(text),
      "  a = read(w) : f32[2]\n  assign(u, x)\n  assign_add(w, x)\n  d = read(w) : f32[2]\n"
      "  p = add(a, a) : f32[2]\n  q = add(a, d) : f32[2]\n  e = add(d, c) : f32[2]\n  return p, q, e\n");
  EXPECT_EQ(report_.runs[0].error, "");
}

TEST_F(PassTest, FailuresAreNotMovedOverEffects) {
  Parse(
      "fn @main(x: f32[2], i: i32[1]) -> f32[1], f32[1] {\n  a = gather(x, i)\n  b = neg(x)\n  hello: "
      "print(b)\n"
      "  c = gather(b, i)\n  d = add(a, c)\n  return d, c\n}\nentry main = @main (x, i) -> (_, _)\n");
  std::string text = Optimize([](const keel_host* h, keel_edit* e) {
    Reader r{h, e};
    uint32_t first = r.Nodes("gather")[0], add = r.Nodes("add")[0], neg = r.Nodes("neg")[0];
    uint32_t over[] = {first, add}, second = r.Nodes("gather")[1], behind[] = {second, add};
    keel_value v = 0;
    EXPECT_EQ(h->edit_outline(e, over, 2, "g", nullptr), KEEL_INVALID);
    EXPECT_EQ(h->edit_replace(e, r.Out(first), r.Out(second)), KEEL_INVALID);
    EXPECT_EQ(r.AddNode("gather", {r.In(neg, 0), r.In(first, 1)}, &v), KEEL_PRECONDITION);
    return h->edit_outline(e, behind, 2, "g", nullptr);
  });
  EXPECT_EQ(Main(text),
            "  a = gather(x, i) : f32[1]\n  b = neg(x) : f32[2]\n  hello: print(b)\n"
            "  c, d = call(b, i, a){body=@g} : f32[1], f32[1]\n  return d, c\n");
}

// Three edits. With less fuel only the first ones are made, in the same order, and later passes do not run.
TEST_F(PassTest, FuelEndsThePassesAfterSoManyEdits) {
  ASSERT_TRUE(Add("first", {{"first", KEEL_PHASE_LOWER}}).ok());
  ASSERT_TRUE(Add("second", {{"second", KEEL_PHASE_LOWER}}).ok());
  const char* text =
      "fn @main(x: f32[2]) -> y: f32[2] {\n  a = relu(x)\n  b = relu(a)\n  y = relu(b)\n  return y\n}\n"
      "entry main = @main (x) -> (y)\n";
  auto to_neg = [](const keel_host* h, keel_edit* e, size_t most) -> keel_rc {
    Reader r{h, e};
    for (uint32_t n : r.Nodes("relu")) {
      keel_value v = 0;
      if (!most--) break;
      EXPECT_EQ(h->edit_before(e, n), KEEL_OK);
      EXPECT_EQ(r.AddNode("neg", {r.In(n, 0)}, &v), KEEL_OK);
      if (keel_rc rc = h->edit_replace(e, r.Out(n), v); rc != KEEL_OK) return rc;
    }
    return KEEL_OK;
  };
  Bodies()[0] = [&](const keel_host* h, keel_edit* e) { return to_neg(h, e, 2); };
  Bodies()[1] = [&](const keel_host* h, keel_edit* e) { return to_neg(h, e, 9); };
  for (uint64_t fuel = 0; fuel <= 4; fuel++) {
    Parse(text);
    PassChoice choice;
    choice.fuel = fuel;
    choice.dump = "second";
    PassReport report;
    auto made = OptimizeModule(passes_, choice, *graph_, device_, {}, &report);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(report.Edits(), std::min<uint64_t>(fuel, 3));
    std::string after = *made ? PrintText(**made) : PrintText(*module_);
    std::string ops;
    for (size_t at = 0; (at = after.find(" = ", at)) != std::string::npos; at++) ops += after[at + 3];
    EXPECT_EQ(ops.substr(0, 3), std::string("nnnrrr").substr(3 - report.Edits(), 3)) << after;
    EXPECT_EQ(report.runs.back().skipped.empty(), fuel > 2);
    ASSERT_EQ(report.dumps.size(), fuel > 2);
    for (const PassDump& dump : report.dumps) EXPECT_EQ(dump.text, after);
    for (const PassRun& run : report.runs) EXPECT_EQ(run.error, "");
  }
}

TEST_F(PassTest, APlanRunsWhatPassesMade) {
  ASSERT_TRUE(Add("test", {{"test", KEEL_PHASE_LOWER}}).ok());
  Parse(
      "fn @main(x: f32[b]) -> y: f32[b] {\n  v = neg(x)\n  relu(v)\n  y = exp(v)\n  return y\n}\nentry main "
      "= @main (x) -> (y)\n");
  std::string before = PrintText(*module_);
  Bodies()[0] = [](const keel_host* h, keel_edit* e) {
    Reader r{h, e};
    EXPECT_EQ(r.Nodes("relu").size(), 0u) << "pruned: nobody fetches it";
    std::vector<uint32_t> all = r.Nodes();
    EXPECT_EQ(h->edit_supported(e, all[0]), 1);
    return h->edit_outline(e, all.data(), static_cast<uint32_t>(all.size()), "g", nullptr);
  };
  ValueId feed = graph_->params[0], fetch = graph_->results[0];
  auto plan = MakePlan({graph_, device_, {&feed, 1}, {&fetch, 1}, {}}, {}, {&passes_, {}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::string report = *(*plan)->Report({});
  EXPECT_NE(report.find(R"("edits":1)"), std::string::npos) << report;
  EXPECT_NE(report.find(R"("node":"y/v")"), std::string::npos) << report;  // in the body of the call
  ArrayRef in = *NewArray(DType::kF32, {{1}}, true), out;
  keel_array* raw = in.get();
  ASSERT_TRUE((*plan)->Run({&raw, 1}, {&out, 1}).ok());
  EXPECT_EQ(*reinterpret_cast<const float*>(out->data()), 1.0f);
  EXPECT_EQ(PrintText(*module_), before);
}

}  // namespace
}  // namespace keel::test
