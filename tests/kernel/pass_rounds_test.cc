// pass_rounds_test.cc: how often passes run, which changes count as edits, and on which graphs: rounds of
// phase canon, undone edits, out of memory, device scopes, bodies of calls.
#include "tests/kernel/pass_helpers.h"

namespace keel::test {
namespace {

TEST_F(PassTest, CanonRunsUntilARoundEditsNothing) {
  ASSERT_TRUE(Add("p", {{"drop"}, {"look"}, {"once", KEEL_PHASE_LOWER}}).ok());
  Parse(kChain);
  int looks = 0, lowers = 0;
  Bodies()[1] = [&](const keel_host*, keel_edit*) { return looks++, KEEL_OK; };
  Bodies()[2] = [&](const keel_host*, keel_edit*) { return lowers++, KEEL_OK; };
  Bodies()[0] = DropOne;
  EXPECT_EQ(Main(Optimize(nullptr)), "  y = exp(x) : f32[2]\n  return y\n");
  EXPECT_EQ(looks, 3) << "two rounds with an edit, one without";
  EXPECT_EQ(lowers, 1);
  ASSERT_EQ(report_.runs.size(), 3u) << "one line for each pass";
  EXPECT_EQ(report_.runs[0].edits, 2u);
}

TEST_F(PassTest, RoundsEnd) {
  ASSERT_TRUE(Add("p", {{"endless"}}).ok());
  Parse(kChain);
  Bodies()[0] = [](const keel_host* h, keel_edit* e) {
    Reader r{h, e};
    uint32_t neg = r.Nodes("neg")[0];
    keel_value v = 0;
    EXPECT_EQ(h->edit_before(e, neg), KEEL_OK);
    EXPECT_EQ(r.AddNode("neg", {r.In(neg, 0)}, &v), KEEL_OK);
    return h->edit_replace(e, r.Out(neg), v);
  };
  Optimize(nullptr);
  EXPECT_EQ(report_.runs[0].edits, 4u) << "four rounds with one edit each";
}

TEST_F(PassTest, UndoneOutliningIsNoEdit) {
  Parse(kChain);
  std::string before = PrintText(*module_);
  auto tries = [](const keel_host* h, keel_edit* e, size_t count) {
    Reader r{h, e};
    std::vector<uint32_t> all = r.Nodes();
    uint32_t call = 0;
    EXPECT_EQ(h->edit_outline(e, all.data(), static_cast<uint32_t>(count), "g", &call), KEEL_OK);
    return call;
  };
  std::string after = Optimize([&](const keel_host* h, keel_edit* e) {
    EXPECT_EQ(h->edit_inline(e, tries(h, e, 3)), KEEL_OK);
    return h->edit_inline(e, tries(h, e, 2));
  });
  EXPECT_EQ(report_.runs[0].edits, 0u);
  EXPECT_EQ(after, before);
  Optimize([&](const keel_host* h, keel_edit* e) {
    EXPECT_EQ(h->edit_inline(e, tries(h, e, 3)), KEEL_OK);
    tries(h, e, 2);
    return KEEL_OK;
  });
  EXPECT_EQ(report_.runs[0].edits, 1u) << "the edit that was kept";
}

TEST_F(PassTest, WithoutMemoryThereIsAnErrorAndNoPassIsBlamed) {
  ASSERT_TRUE(Add("p", {{"large"}}).ok());
  Parse(kChain);
  Bodies()[0] = [](const keel_host* h, keel_edit*) { return h->fail(KEEL_OOM, "out of memory"); };
  PassReport report;
  auto better = OptimizeModule(passes_, {}, *graph_, device_, {}, &report);
  EXPECT_TRUE(absl::IsResourceExhausted(better.status())) << better.status();
  EXPECT_EQ(passes_.Disabled("large"), "");
  Bodies()[0] = DropOne;
  EXPECT_EQ(Main(Optimize(nullptr)), "  y = exp(x) : f32[2]\n  return y\n");
}

TEST_F(PassTest, DeviceScopesStay) {
  Parse(
      "fn @main(x: f32[2]) -> y: f32[2] {\n  a = neg(x) @\"one\"\n  b = relu(a) @\"one\"\n  y = exp(b) "
      "@\"two\"\n  "
      "return y\n}\nentry main = @main (x) -> (y)\n");
  std::string text = Optimize([](const keel_host* h, keel_edit* e) {
    Reader r{h, e};
    std::vector<uint32_t> all = r.Nodes();
    EXPECT_NE(h->edit_outline(e, all.data(), 3, "g", nullptr), KEEL_OK) << "two scopes";
    return h->edit_outline(e, all.data(), 2, "g", nullptr);
  });
  EXPECT_EQ(Main(text), "  b = call(x){body=@g} @one : f32[2]\n  y = exp(b) @two : f32[2]\n  return y\n");
}

TEST_F(PassTest, BodiesOfCallsAreOptimisedOnce) {
  Parse(kCalls);
  std::string text = Optimize(DropNegs);
  EXPECT_EQ(report_.runs[0].edits, 2u);
  EXPECT_NE(text.find("fn @deep(x: f32[2]) -> f32[2] {\n  b = relu(x) : f32[2]\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("  c = call(x){body=@deep} : f32[2]\n  e = abs(c) : f32[2]\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("fn @other(x: f32[2]) -> f32[2] {\n  a = neg(x) : f32[2]\n"), std::string::npos)
      << "nobody calls it: " << text;
}

TEST_F(PassTest, APlanRunsOptimisedBodies) {
  Parse(kCalls);
  ASSERT_TRUE(Add("test", {{"test"}}).ok());
  Bodies()[0] = DropNegs;
  std::string before = PrintText(*module_);
  ValueId feed = graph_->params[0], fetch = graph_->results[0];
  auto plan = MakePlan({graph_, device_, {&feed, 1}, {&fetch, 1}, {}}, {}, {&passes_, {}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::string report = *(*plan)->Report({});
  EXPECT_EQ(report.find("\"op\":\"neg\""), std::string::npos) << report;
  ArrayRef in = *NewArray(DType::kF32, {{2}}, true), out;
  reinterpret_cast<float*>(in->data())[0] = -3;
  keel_array* raw = in.get();
  ASSERT_TRUE((*plan)->Run({&raw, 1}, {&out, 1}).ok());
  EXPECT_EQ(*reinterpret_cast<const float*>(out->data()), 1.0f) << "exp(abs(relu(-3))), twice";
  EXPECT_EQ(PrintText(*module_), before);
}

}  // namespace
}  // namespace keel::test
