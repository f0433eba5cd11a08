// lanes_test.cc: concurrent launches on a device with its own threads.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "abi/keel.h"
#include "abi/keel_plugin.h"
#include "tests/abi/plugin_table.h"

namespace {

// Observed by the plugin. Costs: each node's reported cost with many threads and with one.
std::atomic<uint32_t> most_threads, under_way, most_under_way, sections, launches;
uint64_t cost_of_many, cost_of_one;
uint32_t lanes_that_come;  // out of those requested

keel_rc AddOne(const keel_call* call) {
  const uint32_t now = ++under_way;
  for (uint32_t most = most_under_way; now > most && !most_under_way.compare_exchange_weak(most, now);) {
  }
  for (uint32_t most = most_threads;
       call->env->threads > most && !most_threads.compare_exchange_weak(most, call->env->threads);) {
  }
  if (call->env->threads == 1 && lanes_that_come > 1)  // wait once until a second launch overlaps
    for (int i = 0; i < 20'000 && most_under_way < 2; i++)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const float x = *static_cast<const float*>(keel_ptr(call->in[0]));
  *static_cast<float*>(keel_ptr(call->out[0])) = x + 1;
  launches++;
  under_way--;
  return KEEL_OK;
}
keel_rc Add(const keel_call* call) {
  *static_cast<float*>(keel_ptr(call->out[0])) =
      *static_cast<const float*>(keel_ptr(call->in[0])) + *static_cast<const float*>(keel_ptr(call->in[1]));
  launches++;
  return KEEL_OK;
}

void RunLanes(keel_dev, uint32_t n, void (*lane)(void*), void* arg) {
  sections++;
  std::vector<std::thread> threads;
  for (uint32_t i = 1; i < std::min(n, lanes_that_come); i++) threads.emplace_back(lane, arg);
  lane(arg);
  for (std::thread& t : threads) t.join();
}
uint64_t Cost(keel_dev, const keel_host*, const keel_node*, uint32_t threads) {
  return threads > 1 ? cost_of_many : cost_of_one;
}

const keel_impl kImpls[] = {{"neg", 1, 1, nullptr, "one more", 0, 0, nullptr, nullptr, AddOne},
                            {"add", 1, 1, nullptr, "sum", 0, 0, nullptr, nullptr, Add}};

class Lanes : public testing::Test {
 protected:
  void SetUp() override {
    most_threads = most_under_way = sections = launches = 0;
    cost_of_many = cost_of_one = 100'000;
    lanes_that_come = 4;
    device_ = KEEL_HOST_DEVICE(nullptr, nullptr, nullptr, nullptr);
    device_.run_lanes = RunLanes;
    device_.cost = Cost;
  }
  void TearDown() override { keel_context_free(context_); }

  // y = sum of four chains of two: 3 + 3 + 3 + 3, from 1.
  float Run(const char* lanes = "auto") {
    const keel_plugin table = PluginTable("side", &device_, kImpls, 2);
    EXPECT_EQ(keel_context_new(nullptr, 0, &context_, nullptr), KEEL_OK);
    EXPECT_EQ(keel_plugin_add(context_, &table, nullptr), KEEL_OK);
    std::string text = "keel 1\nfn @main(x: f32[]) -> f32[] {\n";
    for (const char* c : {"a", "b", "c", "d"})
      text += std::string("  ") + c + "0 = neg(x)\n  " + c + "1 = neg(" + c + "0)\n";
    text += "  s = add(add(a1, b1), add(c1, d1))\n  return s\n}\nentry main = @main (x) -> (s)\n";
    keel_module* module = nullptr;
    EXPECT_EQ(keel_module_parse(context_, text.data(), text.size(), &module, nullptr), KEEL_OK);
    const keel_kv options[] = {{"threads", "4"}, {"lanes", lanes}, {"level", "0"}};
    keel_session* session = nullptr;
    EXPECT_EQ(keel_session_new(module, "side", options, 3, &session, nullptr), KEEL_OK);
    keel_plan* plan = nullptr;
    EXPECT_EQ(keel_plan_new(session, nullptr, 0, nullptr, 0, nullptr, 0, &plan, nullptr), KEEL_OK);
    const float one = 1;
    keel_tensor t = {};
    t.data = const_cast<float*>(&one);
    t.device = {1, 0};
    t.dtype = {2, 32, 1};
    keel_array *in = nullptr, *out = nullptr;
    EXPECT_EQ(keel_array_from_tensor(context_, &t, nullptr, nullptr, &in, nullptr), KEEL_OK);
    EXPECT_EQ(keel_plan_run(plan, &in, 1, &out, 1, nullptr), KEEL_OK);
    keel_tensor result = {};
    keel_array_tensor(out, &result);
    const float y = *static_cast<const float*>(result.data);
    keel_array_free(in);
    keel_array_free(out);
    keel_plan_free(plan);
    keel_session_free(session);
    keel_module_free(module);
    return y;
  }

  keel_device device_;
  keel_context* context_ = nullptr;
};

TEST_F(Lanes, RunSideBySideWithOneThreadEach) {
  EXPECT_EQ(Run(), 12);
  EXPECT_EQ(sections, 1u);
  EXPECT_EQ(launches, 11u);
  EXPECT_GT(most_under_way, 1u);
  EXPECT_LE(most_under_way, 4u);
  EXPECT_EQ(most_threads, 1u);
}
TEST_F(Lanes, FewerMayComeThanWereAsked) {
  lanes_that_come = 1;
  EXPECT_EQ(Run(), 12);
  EXPECT_EQ(sections, 1u);
  EXPECT_EQ(most_under_way, 1u);
}
TEST_F(Lanes, WhatUsesThreadsWellRunsInTurnWithAllOfThem) {
  cost_of_many = cost_of_one / 4;
  EXPECT_EQ(Run(), 12);
  EXPECT_EQ(sections, 0u);
  EXPECT_EQ(most_threads, 4u);
}
TEST_F(Lanes, WhatIsShortRunsInTurn) {
  cost_of_many = cost_of_one = 300;
  EXPECT_EQ(Run(), 12);
  EXPECT_EQ(sections, 0u);
}
TEST_F(Lanes, WhatIsNotKnownRunsInTurn) {
  cost_of_many = cost_of_one = 0;
  EXPECT_EQ(Run(), 12);
  EXPECT_EQ(sections, 0u);
}
TEST_F(Lanes, ADeviceThatTellsNoCostsHasNone) {
  device_.cost = nullptr;
  EXPECT_EQ(Run("all"), 12);
  EXPECT_EQ(sections, 0u);
}
TEST_F(Lanes, AreOffWhereAsked) {
  EXPECT_EQ(Run("off"), 12);
  EXPECT_EQ(sections, 0u);
}

}  // namespace
