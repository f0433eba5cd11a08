// passes_test.cc: passes through the C ABI: a plugin with a working pass and a failing one; sessions select
// passes by option, modules are optimised in place, plans report the passes. Results do not change.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "abi/keel.h"
#include "abi/keel_plugin.h"

namespace {

using Json = nlohmann::json;

// Outlines all nodes of the graph.
keel_rc Outline(const keel_host* h, keel_edit* e) {
  const uint32_t* nodes = nullptr;
  uint32_t n = h->edit_nodes(e, &nodes);
  if (n < 2) return KEEL_OK;
  return h->edit_outline(e, nodes, n, "all", nullptr);
}
keel_rc Faulty(const keel_host* h, keel_edit*) { return h->fail(KEEL_RANGE, "counted wrong"); }

const keel_pass kPasses[] = {
    {"outline", "all nodes into one call", KEEL_PHASE_LOWER, 1, KEEL_EXACT, 0, nullptr, nullptr, Outline},
    {"faulty", "fails", KEEL_PHASE_CANON, 3, KEEL_EXACT, 0, nullptr, nullptr, Faulty}};

constexpr char kText[] =
    "keel 1\nfn @main(x: f32[b]) -> y: f32[b] {\n  a = neg(x)\n  y = exp(a)\n  return y\n}\nentry main = "
    "@main (x) -> (y)\n";

class PassesTest : public testing::Test {
 protected:
  void SetUp() override {
    plugin_ = {};
    plugin_.struct_size = sizeof plugin_;
    plugin_.draft = KEEL_ABI_DRAFT;
    plugin_.name = "test-passes";
    plugin_.passes = kPasses;
    plugin_.n_passes = 2;
    plugin_.pass_stride = sizeof(keel_pass);
    ASSERT_EQ(keel_context_new(nullptr, 0, &context_, nullptr), KEEL_OK);
    ASSERT_EQ(keel_plugin_load(context_, KEEL_TEST_PLUGINS "/keel-reference.so", nullptr), KEEL_OK);
    ASSERT_EQ(keel_plugin_add(context_, &plugin_, nullptr), KEEL_OK);
    ASSERT_EQ(keel_module_parse(context_, kText, std::strlen(kText), &module_, nullptr), KEEL_OK);
  }
  void TearDown() override {
    keel_module_free(module_);
    keel_context_free(context_);
  }

  static std::string Take(keel_text* text) {
    uint64_t size = 0;
    const char* data = keel_text_data(text, &size);
    std::string out(data, size);
    keel_text_free(text);
    return out;
  }
  std::string Text() {
    keel_text* text = nullptr;
    EXPECT_EQ(keel_module_report(module_, "text", &text, nullptr), KEEL_OK);
    return Take(text);
  }

  // The report of a plan prepared with one option; also runs it on x = 0 and expects y = 1.
  Json Plan(const char* key, const char* value) {
    keel_kv option{key, value};
    keel_session* session = nullptr;
    keel_plan* plan = nullptr;
    keel_text* report = nullptr;
    EXPECT_EQ(keel_session_new(module_, "reference", &option, key ? 1 : 0, &session, nullptr), KEEL_OK);
    EXPECT_EQ(keel_plan_new(session, nullptr, 0, nullptr, 0, nullptr, 0, &plan, nullptr), KEEL_OK);
    keel_array *in = nullptr, *out = nullptr;
    int64_t shape[] = {1};
    EXPECT_EQ(keel_array_new(context_, KEEL_F32, shape, 1, &in, nullptr), KEEL_OK);
    EXPECT_EQ(keel_plan_run(plan, &in, 1, &out, 1, nullptr), KEEL_OK);
    keel_tensor y;
    keel_array_tensor(out, &y);
    EXPECT_EQ(*static_cast<const float*>(y.data), 1.0f);
    EXPECT_EQ(keel_plan_report(plan, &in, 1, &report, nullptr), KEEL_OK);
    keel_array_free(in);
    keel_array_free(out);
    keel_plan_free(plan);
    keel_session_free(session);
    return Json::parse(Take(report));
  }

  keel_plugin plugin_;
  keel_context* context_ = nullptr;
  keel_module* module_ = nullptr;
};

TEST_F(PassesTest, SessionsChooseByLevelAndName) {
  std::string before = Text();
  Json report = Plan(nullptr, nullptr);
  EXPECT_EQ(report["level"], 2);
  ASSERT_EQ(report["passes"].size(), 1u);
  EXPECT_EQ(report["passes"][0]["name"], "outline");
  EXPECT_EQ(report["passes"][0]["edits"], 1);
  EXPECT_GE(report["passes"][0]["ms"].get<double>(), 0.0);
  EXPECT_EQ(report["launches"].size(), 2u) << "no impl takes the call: its nodes run";
  EXPECT_EQ(Plan("level", "0")["passes"].size(), 0u);
  EXPECT_EQ(Plan("passes", "-outline")["passes"].size(), 0u);
  EXPECT_EQ(Plan("observe", "1")["passes"].size(), 0u);
  EXPECT_EQ(Text(), before) << "planning works on a copy";
}

TEST_F(PassesTest, AFaultIsReportedOnceAndTheResultStays) {
  Json report = Plan("level", "3");
  ASSERT_EQ(report["passes"].size(), 2u);
  EXPECT_EQ(report["passes"][0]["error"], "counted wrong");
  EXPECT_NE(Plan("level", "3")["passes"][0]["skipped"].get<std::string>().find("counted wrong"),
            std::string::npos);
  keel_text* passes = nullptr;
  ASSERT_EQ(keel_context_report(context_, "passes", &passes, nullptr), KEEL_OK);
  Json list = Json::parse(Take(passes));
  EXPECT_EQ(list[0]["name"], "faulty");
  EXPECT_TRUE(list[0].contains("disabled"));
}

TEST_F(PassesTest, ModulesAreOptimisedInPlace) {
  keel_session* old = nullptr;
  ASSERT_EQ(keel_session_new(module_, "reference", nullptr, 0, &old, nullptr), KEEL_OK);
  keel_text* report = nullptr;
  ASSERT_EQ(keel_module_optimize(module_, nullptr, "reference", nullptr, 0, &report, nullptr), KEEL_OK);
  EXPECT_EQ(Json::parse(Take(report))["passes"][0]["edits"], 1);
  EXPECT_NE(Text().find("y = call(x){body=@all} : f32[b]"), std::string::npos) << Text();
  Plan("level", "0");
  keel_plan* plan = nullptr;  // an older session still works
  EXPECT_EQ(keel_plan_new(old, nullptr, 0, nullptr, 0, nullptr, 0, &plan, nullptr), KEEL_OK);
  keel_plan_free(plan);
  keel_session_free(old);
  keel_error* err = nullptr;
  keel_kv bad{"level", "4"};
  EXPECT_EQ(keel_module_optimize(module_, nullptr, "reference", &bad, 1, nullptr, &err), KEEL_INVALID);
  EXPECT_STREQ(keel_error_text(err, KEEL_ERROR_MESSAGE),
               "option \"level\": got \"4\", expected a number from 0 to 3");
  keel_error_free(err);
}

}  // namespace
