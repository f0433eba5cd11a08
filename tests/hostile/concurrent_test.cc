// concurrent_test.cc: many threads use the hostile devices: runs of one plan with different sizes, of several
// plans, eager ops, moves between devices, and runs on bad data, which fail alone.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "abi/keel.h"

namespace {

constexpr int kThreads = 6, kRounds = 12;
constexpr char kText[] = R"(keel 1
const w: f32[2, 2] = [1.0, 2.0, 3.0, 4.0]

fn @main(x: f32[b, 2], i: i64[1]) -> f32[b, 2], f32[1, 2] {
  h = matmul(x, w) : f32[b, 2]
  r = relu(h) : f32[b, 2]
  n = neg(r) : f32[b, 2]
  row = gather(n, i){axis=0} : f32[1, 2]
  return n, row
}
entry main = @main (x, i) -> (n, row)
)";

class Concurrent : public testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override {
    void* library = dlopen(KEEL_TEST_HOSTILE, RTLD_NOW);
    ASSERT_TRUE(library) << dlerror();
    auto set = reinterpret_cast<void (*)(const char*, uint64_t)>(dlsym(library, "hostile_set"));
    get_ = reinterpret_cast<uint64_t (*)(const char*)>(dlsym(library, "hostile_get"));
    set("seed", GetParam());
    ASSERT_EQ(keel_context_new(nullptr, 0, &context_, nullptr), KEEL_OK);
    keel_error* error = nullptr;
    ASSERT_EQ(keel_plugin_load(context_, KEEL_TEST_HOSTILE, &error), KEEL_OK)
        << keel_error_text(error, KEEL_ERROR_MESSAGE);
    ASSERT_EQ(keel_module_parse(context_, kText, sizeof kText - 1, &module_, &error), KEEL_OK)
        << keel_error_text(error, KEEL_ERROR_MESSAGE);
  }
  void TearDown() override {
    keel_module_free(module_);
    keel_context_free(context_);
    EXPECT_EQ(get_("violations"), 0u);
    for (const char* what : {"segments", "queues", "devices", "states"}) EXPECT_EQ(get_(what), 0u) << what;
  }

  keel_array* Array(keel_dt dtype, std::vector<int64_t> shape) {
    keel_array* a = nullptr;
    EXPECT_EQ(keel_array_new(context_, dtype, shape.data(), static_cast<int32_t>(shape.size()), &a, nullptr),
              KEEL_OK);
    return a;
  }
  template <typename T>
  static T* Data(keel_array* a) {
    keel_tensor t;
    keel_array_tensor(a, &t);
    return static_cast<T*>(t.data);
  }
  // Rows of (value, -1), which become -relu(value - 3, 2 value - 4).
  keel_array* Feed(int64_t rows, float value) {
    keel_array* x = Array(KEEL_F32, {rows, 2});
    for (int64_t r = 0; r < rows; r++) Data<float>(x)[2 * r] = value, Data<float>(x)[2 * r + 1] = -1;
    return x;
  }
  static bool Right(keel_array* y, int64_t rows, float value) {
    for (int64_t r = 0; r < rows; r++)
      if (Data<float>(y)[2 * r] != -(value - 3) || Data<float>(y)[2 * r + 1] != -(2 * value - 4))
        return false;
    return true;
  }

  keel_plan* Prepare(const char* device, keel_session** session) {
    EXPECT_EQ(keel_session_new(module_, device, nullptr, 0, session, nullptr), KEEL_OK);
    keel_plan* plan = nullptr;
    EXPECT_EQ(keel_plan_new(*session, nullptr, 0, nullptr, 0, nullptr, 0, &plan, nullptr), KEEL_OK);
    return plan;
  }

  // One run; a row out of range is an error of this run only.
  void Run(keel_plan* plan, int64_t rows, float value, bool bad) {
    keel_array *in[] = {Feed(rows, value), Array(KEEL_I64, {1})}, *out[2] = {};
    *Data<int64_t>(in[1]) = bad ? rows : rows - 1;
    keel_error* error = nullptr;
    keel_rc rc = keel_plan_run(plan, in, 2, out, 2, &error);
    wrong_ += rc != (bad ? KEEL_RANGE : KEEL_OK);
    if (rc == KEEL_OK) wrong_ += !Right(out[0], rows, value) || !Right(out[1], 1, value);
    if (bad && error)
      wrong_ += std::string(keel_error_text(error, KEEL_ERROR_MESSAGE)).find("\"row\"") == std::string::npos;
    keel_error_free(error);
    for (keel_array* a : {in[0], in[1], out[0], out[1]})
      if (a) keel_array_free(a);
  }

  template <typename Job>
  void InThreads(Job job) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; t++)
      threads.emplace_back([=] {
        for (int i = 0; i < kRounds; i++) job(t, i);
      });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong_, 0);
  }

  keel_context* context_ = nullptr;
  keel_module* module_ = nullptr;
  uint64_t (*get_)(const char*) = nullptr;
  std::atomic<int> wrong_ = 0;
};

TEST_P(Concurrent, OnePlan) {
  keel_session* session = nullptr;
  keel_plan* plan = Prepare("hostile:0", &session);
  InThreads(
      [&](int t, int i) { Run(plan, 1 + (t + i) % 3 * 40, static_cast<float>(10 + t), (t + i) % 5 == 0); });
  keel_plan_free(plan);
  keel_session_free(session);
}

TEST_P(Concurrent, SeveralPlansOfOneSessionAndOfOthers) {
  keel_session* shared = nullptr;
  keel_plan_free(Prepare("hostile:1", &shared));
  InThreads([&](int t, int i) {
    keel_session* session = nullptr;
    keel_plan* plan = Prepare(t % 2 ? "hostile:1" : "hostile:0", &session);
    for (int k = 0; k < 3; k++) Run(plan, 1 + k * 30, static_cast<float>(5 + t + i), k == 1);
    keel_plan_free(plan);
    keel_session_free(session);
    keel_array *in[] = {Feed(2, 9), Array(KEEL_I64, {1})}, *row = nullptr;
    *Data<int64_t>(in[1]) = 1;
    const char *feeds[] = {"x", "i"}, *fetches[] = {t % 2 ? "row" : "n"};
    wrong_ += keel_session_run(shared, feeds, in, 2, fetches, &row, 1, nullptr, 0, nullptr) != KEEL_OK;
    wrong_ += !row || !Right(row, 1, 9);
    for (keel_array* a : {in[0], in[1], row})
      if (a) keel_array_free(a);
  });
  keel_session_free(shared);
}

TEST_P(Concurrent, MovesAndEagerOps) {
  keel_op* op = nullptr;
  ASSERT_EQ(keel_op_new(context_, "hostile:1", "add", 0, nullptr, nullptr, 0, &op, nullptr), KEEL_OK);
  InThreads([&](int t, int i) {
    int64_t rows = 1 + (t * 7 + i) % 50;
    keel_array *x = Feed(rows, static_cast<float>(t + i)), *y = nullptr, *there = nullptr;
    for (const char* place : {"hostile:0", "hostile:1", "hostile:0"}) {
      wrong_ += keel_array_to(context_, there ? there : x, place, &y, nullptr) != KEEL_OK;
      if (there) keel_array_free(there);
      there = std::exchange(y, nullptr);
    }
    keel_array *back = nullptr, *sum = nullptr, *z = nullptr;
    wrong_ += keel_array_to(context_, there, nullptr, &back, nullptr) != KEEL_OK;
    keel_array* in[] = {back, back};
    wrong_ += keel_apply(op, in, 2, &sum, 1, nullptr) != KEEL_OK;
    wrong_ += !sum || keel_array_to(context_, sum, nullptr, &z, nullptr) != KEEL_OK;
    for (int64_t k = 0; z && k < 2 * rows; k++) wrong_ += Data<float>(z)[k] != 2 * Data<float>(x)[k];
    for (keel_array* a : {x, there, back, sum, z})
      if (a) keel_array_free(a);
  });
  keel_op_free(op);
}

INSTANTIATE_TEST_SUITE_P(, Concurrent, testing::Values(1, 2, 3));

}  // namespace
