// pass_rollback_test.cc: a pass fails after an earlier pass has made the module private: its edits are rolled
// back, those of the earlier pass stay.
#include "tests/kernel/pass_helpers.h"

namespace keel::test {
namespace {

// Edits on its first run, so that the module is private for later passes.
PassBody First(PassBody body, int* left) {
  return [=](const keel_host* h, keel_edit* e) { return (*left)-- > 0 ? body(h, e) : KEEL_OK; };
}

// Outlines all nodes, adds constants, and replaces the first node's result by one of them.
keel_rc Meddle(const keel_host* h, keel_edit* e) {
  Reader r{h, e};
  std::vector<uint32_t> all = r.Nodes();
  float number[2] = {3, 4};
  int64_t shape[] = {2};
  keel_tensor t{};
  t.data = number;
  t.device = {1, 0};
  t.ndim = 1;
  t.dtype = {2, 32, 1};
  t.shape = shape;
  keel_value made = 0, scalar = 0;
  EXPECT_EQ(h->constant(e, "weight", &t, nullptr, nullptr, &made), KEEL_OK);
  t.ndim = 0;
  EXPECT_EQ(h->constant(e, nullptr, &t, nullptr, nullptr, &scalar), KEEL_OK);
  EXPECT_EQ(h->edit_outline(e, &all[1], 1, "group", nullptr), KEEL_OK);
  return h->edit_replace(e, r.Out(all[0]), made);
}

TEST_F(PassTest, AFaultAfterAGoodPassLeavesWhatThatMade) {
  ASSERT_TRUE(Add("p", {{"good"}, {"bad", KEEL_PHASE_LOWER}, {"last", KEEL_PHASE_LOWER, 1, 0, "bad"}}).ok());
  Parse(kChain);
  int once = 1;
  std::string seen;
  Bodies()[0] = First(DropOne, &once);
  Bodies()[1] = [&](const keel_host* h, keel_edit* e) {
    EXPECT_EQ(Meddle(h, e), KEEL_OK);
    EXPECT_EQ(e->module->graphs.size(), 2u);
    return h->fail(KEEL_INTERNAL, "lost the thread");
  };
  Bodies()[2] = [&](const keel_host*, keel_edit* e) { return seen = PrintText(*e->module), KEEL_OK; };
  std::string wanted =
      "keel 1\n\nfn @main(x: f32[2]) -> y: f32[2] {\n  b = relu(x) : f32[2]\n  y = exp(b) : f32[2]\n"
      "  return y\n}\n\nentry main = @main (x) -> (y)\n";
  EXPECT_EQ(Optimize(nullptr), wanted);
  EXPECT_EQ(seen, wanted) << "no graph and no constant is left, nor a name of them";
  EXPECT_EQ(report_.runs[1].diff,
            "+  y = call(weight){body=@group} : f32[2]\n-  b = relu(x) : f32[2]\n-  y = exp(b) : f32[2]\n");
}

TEST_F(PassTest, AResultThatIsRefusedAfterAGoodPassLeavesWhatThatMade) {
  ASSERT_TRUE(Add("p", {{"good"}, {"bad", KEEL_PHASE_LOWER}}).ok());
  Parse(kChain);
  int once = 1;
  Bodies()[0] = First(DropOne, &once);
  Bodies()[1] = [&](const keel_host* h, keel_edit* e) {
    EXPECT_EQ(Meddle(h, e), KEEL_OK);
    e->graph->values[e->graph->params[0]].type.dims = {};  // invalid: no member function would do this
    return KEEL_OK;
  };
  std::string text = Optimize(nullptr);
  EXPECT_EQ(Main(text), "  b = relu(x) : f32[2]\n  y = exp(b) : f32[2]\n  return y\n") << text;
  EXPECT_EQ(report_.runs[1].error, "feed \"x\" changed its type");
  EXPECT_NE(report_.runs[1].diff.find("+"), std::string::npos);
  EXPECT_EQ(text.find("group"), std::string::npos);
}

TEST_F(PassTest, AFaultInABodyLeavesAllOthers) {
  ASSERT_TRUE(Add("p", {{"negs"}, {"bad"}}).ok());
  Parse(kCalls);
  Bodies()[0] = DropNegs;
  Bodies()[1] = [&](const keel_host* h, keel_edit* e) -> keel_rc {
    Reader r{h, e};
    if (e->graph->name != "deep") return KEEL_OK;
    std::vector<uint32_t> all = r.Nodes();
    EXPECT_EQ(h->edit_outline(e, all.data(), 1, "group", nullptr), KEEL_OK);
    return h->fail(KEEL_INTERNAL, "lost the thread");
  };
  std::string text = Optimize(nullptr);
  EXPECT_NE(text.find("fn @deep(x: f32[2]) -> f32[2] {\n  b = relu(x) : f32[2]\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("  c = call(x){body=@deep} : f32[2]\n  e = abs(c) : f32[2]\n"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("group"), std::string::npos) << text;
  EXPECT_EQ(report_.runs[1].error, "lost the thread");
}

}  // namespace
}  // namespace keel::test
