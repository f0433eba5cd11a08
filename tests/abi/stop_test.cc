// stop_test.cc: keel_context_cancel (from a thread, from a signal handler) and a time limit stop a long run;
// then the same session computes the right answer.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "abi/keel.h"

namespace {

keel_context* signalled = nullptr;

class Stop : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(keel_context_new(nullptr, 0, &context_, nullptr), KEEL_OK);
    ASSERT_EQ(keel_plugin_load(context_, KEEL_TEST_PLUGINS "/keel-reference.so", nullptr), KEEL_OK);
    // 2000 additions: with a million elements, minutes of work for the reference device.
    std::string text = "keel 1 opset core 1\n\nfn @main(x: f32[n]) -> f32[n] {\n  y0 = add(x, x)\n";
    for (int i = 1; i < 2000; i++)
      text += "  y" + std::to_string(i) + " = add(y" + std::to_string(i - 1) + ", x)\n";
    text += "  return y1999\n}\n";
    ASSERT_EQ(keel_module_parse(context_, text.c_str(), text.size(), &module_, nullptr), KEEL_OK);
    Open({});
  }
  void TearDown() override {
    keel_error_free(error_);
    keel_plan_free(plan_);
    keel_session_free(session_);
    keel_module_free(module_);
    keel_context_free(context_);
  }

  void Open(std::vector<keel_kv> options) {
    keel_plan_free(plan_);
    keel_session_free(session_);
    plan_ = nullptr, session_ = nullptr;
    auto n = static_cast<uint32_t>(options.size());
    ASSERT_EQ(keel_session_new(module_, "reference", options.data(), n, &session_, nullptr), KEEL_OK);
    ASSERT_EQ(keel_plan_new(session_, nullptr, 0, nullptr, 0, nullptr, 0, &plan_, nullptr), KEEL_OK);
  }

  keel_rc Run(int64_t n, keel_array** y) {
    keel_array* x = nullptr;
    EXPECT_EQ(keel_array_new(context_, KEEL_F32, &n, 1, &x, nullptr), KEEL_OK);
    keel_tensor t;
    keel_array_tensor(x, &t);
    std::fill_n(static_cast<float*>(t.data), n, 1.0f);
    keel_error_free(error_);
    error_ = nullptr;
    keel_rc rc = keel_plan_run(plan_, &x, 1, y, 1, &error_);
    keel_array_free(x);
    return rc;
  }

  void ExpectStopped(const std::string& why) {
    keel_array* y = nullptr;
    EXPECT_EQ(Run(kLong, &y), KEEL_CANCELLED);
    EXPECT_EQ(y, nullptr);
    std::string message = keel_error_text(error_, KEEL_ERROR_MESSAGE);
    EXPECT_EQ(message.substr(0, 15), "stopped after \"") << message;
    EXPECT_NE(message.find(why), std::string::npos) << message;
  }

  void ExpectRight() {
    keel_array* y = nullptr;
    ASSERT_EQ(Run(3, &y), KEEL_OK) << keel_error_text(error_, KEEL_ERROR_MESSAGE);
    keel_tensor t;
    keel_array_tensor(y, &t);
    for (int i = 0; i < 3; i++) EXPECT_EQ(static_cast<float*>(t.data)[i], 2001.0f);
    keel_array_free(y);
  }

  static constexpr int64_t kLong = 1000000;
  keel_context* context_ = nullptr;
  keel_module* module_ = nullptr;
  keel_session* session_ = nullptr;
  keel_plan* plan_ = nullptr;
  keel_error* error_ = nullptr;
};

TEST_F(Stop, ByAnotherThread) {
  ExpectRight();
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    keel_context_cancel(context_, 1);
  });
  ExpectStopped("by keel_context_cancel");
  other.join();
  keel_array* y = nullptr;
  EXPECT_EQ(Run(3, &y), KEEL_CANCELLED);  // until it is cleared
  keel_context_cancel(context_, 0);
  ExpectRight();
}

TEST_F(Stop, BySignal) {
  signalled = context_;
  struct sigaction action = {}, before;
  action.sa_handler = [](int) { keel_context_cancel(signalled, 1); };
  sigaction(SIGALRM, &action, &before);
  itimerval once = {{0, 0}, {0, 20000}};
  setitimer(ITIMER_REAL, &once, nullptr);
  ExpectStopped("by keel_context_cancel");
  sigaction(SIGALRM, &before, nullptr);
  keel_context_cancel(context_, 0);
  ExpectRight();
}

TEST_F(Stop, ByTimeLimit) {
  Open({{"timeout_ms", "20"}});
  for (int i = 0; i < 2; i++) {
    ExpectStopped("the time limit is 20 ms");
    EXPECT_STREQ(keel_error_text(error_, KEEL_ERROR_HINT), "raise the option \"timeout_ms\"");
  }
  Open({{"timeout_ms", "600000"}});  // long enough for a short run
  ExpectRight();
}

TEST_F(Stop, CancelReachesRunsWithALimitToo) {
  Open({{"timeout_ms", "600000"}});
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    keel_context_cancel(context_, 1);
  });
  ExpectStopped("by keel_context_cancel");
  other.join();
  keel_context_cancel(context_, 0);
  ExpectRight();
}

// Concurrent runs with and without limits: only those over their limit stop.
TEST_F(Stop, LimitsAreOfOneRun) {
  Open({{"timeout_ms", "600000"}});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; t++)
    threads.emplace_back([&, t] {
      keel_kv limit = {"timeout_ms", t ? "600000" : "1"};
      keel_session* session = nullptr;
      keel_array *x = nullptr, *y = nullptr;
      int64_t n = t ? 10 : kLong;
      keel_session_new(module_, "reference", &limit, 1, &session, nullptr);
      keel_array_new(context_, KEEL_F32, &n, 1, &x, nullptr);
      for (int i = 0; i < 5; i++) {
        keel_rc rc = keel_session_run(session, nullptr, &x, 1, nullptr, &y, 1, nullptr, 0, nullptr);
        wrong += rc != (t ? KEEL_OK : KEEL_CANCELLED);
        if (rc == KEEL_OK) keel_array_free(y);
      }
      keel_array_free(x);
      keel_session_free(session);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Stop, EagerCallsStopToo) {
  keel_op* op = nullptr;
  ASSERT_EQ(keel_op_new(context_, "reference", "add", 0, nullptr, nullptr, 0, &op, nullptr), KEEL_OK);
  keel_array *x = nullptr, *y = nullptr;
  ASSERT_EQ(keel_array_new(context_, KEEL_F32, nullptr, 0, &x, nullptr), KEEL_OK);
  keel_array* in[] = {x, x};
  for (int i = 0; i < 3; i++) {  // the first call by a plan, the others by the fast path
    keel_context_cancel(context_, 1);
    EXPECT_EQ(keel_apply(op, in, 2, &y, 1, nullptr), KEEL_CANCELLED);
    EXPECT_EQ(y, nullptr);
    keel_context_cancel(context_, 0);
    EXPECT_EQ(keel_apply(op, in, 2, &y, 1, nullptr), KEEL_OK);
    keel_array_free(std::exchange(y, nullptr));
  }
  keel_array_free(x);
  keel_op_free(op);
}

TEST_F(Stop, RefusesLimitsThatAreNone) {
  for (const char* bad : {"0", "-1", "soon", "5000000000"}) {
    keel_kv option = {"timeout_ms", bad};
    keel_session* session = nullptr;
    keel_error* error = nullptr;
    EXPECT_EQ(keel_session_new(module_, "reference", &option, 1, &session, &error), KEEL_INVALID);
    EXPECT_EQ(
        std::string(keel_error_text(error, KEEL_ERROR_MESSAGE)),
        std::string("option \"timeout_ms\": got \"") + bad + "\", expected a number from 1 to 4294967295");
    keel_error_free(error);
  }
}

}  // namespace
