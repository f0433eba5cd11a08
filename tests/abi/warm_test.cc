// warm_test.cc: a warm call allocates nothing and takes no lock. This program defines malloc and
// pthread_mutex_lock for all libraries of the process, and counts calls.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

#include "abi/keel.h"

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
}

namespace {

std::atomic<bool> counting{false};
std::atomic<int> allocations{0}, frees{0}, locks{0};
void Count(std::atomic<int>& what) {
  if (counting.load(std::memory_order_relaxed)) what.fetch_add(1, std::memory_order_relaxed);
}
template <class F>
F* Real(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {
void* malloc(size_t n) {
  Count(allocations);
  return __libc_malloc(n);
}
void* calloc(size_t n, size_t size) {
  Count(allocations);
  return __libc_calloc(n, size);
}
void* realloc(void* p, size_t n) {
  Count(allocations);
  return __libc_realloc(p, n);
}
void* aligned_alloc(size_t align, size_t n) {
  Count(allocations);
  return __libc_memalign(align, n);
}
void free(void* p) {
  if (p) Count(frees);
  __libc_free(p);
}
int pthread_mutex_lock(pthread_mutex_t* m) {
  static auto* real = Real<int(pthread_mutex_t*)>("pthread_mutex_lock");
  Count(locks);
  return real(m);
}
int pthread_mutex_trylock(pthread_mutex_t* m) {
  static auto* real = Real<int(pthread_mutex_t*)>("pthread_mutex_trylock");
  Count(locks);
  return real(m);
}
int pthread_rwlock_rdlock(pthread_rwlock_t* l) {
  static auto* real = Real<int(pthread_rwlock_t*)>("pthread_rwlock_rdlock");
  Count(locks);
  return real(l);
}
}

namespace {

constexpr int kCalls = 1000;

class Warm : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string plugin = std::string(KEEL_TEST_PLUGINS "/keel-") + GetParam() + ".so";
    keel_kv one = {"threads", "1"};
    ASSERT_EQ(keel_context_new(&one, 1, &context_, nullptr), KEEL_OK);
    if (keel_plugin_load(context_, plugin.c_str(), nullptr) != KEEL_OK)
      GTEST_SKIP() << "this build has no plugin " << plugin;
  }
  void TearDown() override {
    for (keel_array* a : arrays_) keel_array_free(a);
    keel_context_free(context_);
  }

  template <class T>
  keel_array* Filled(keel_dt dtype, std::vector<int64_t> shape, T value) {
    keel_array* a = nullptr;
    EXPECT_EQ(keel_array_new(context_, dtype, shape.data(), static_cast<int32_t>(shape.size()), &a, nullptr),
              KEEL_OK);
    keel_tensor t;
    keel_array_tensor(a, &t);
    int64_t count = 1;
    for (int64_t d : shape) count *= d;
    std::fill_n(static_cast<T*>(t.data), count, value);
    arrays_.push_back(a);
    return a;
  }

  // Counts allocations and locks of 1000 calls after a few warm-up calls. The call returns one array, which
  // is released.
  template <class Call>
  static void ExpectNothing(const char* what, Call call) {
    for (int i = 0; i < kCalls + 10; i++) {
      if (i == 10) counting = true;
      keel_array* result = nullptr;
      keel_rc rc = call(&result);
      keel_array_free(result);
      if (rc != KEEL_OK) {
        counting = false;
        FAIL() << what << " failed with code " << rc;
      }
    }
    counting = false;
    EXPECT_EQ(allocations.exchange(0), 0) << what;
    EXPECT_EQ(frees.exchange(0), 0) << what;
    EXPECT_EQ(locks.exchange(0), 0) << what;
  }

  void ApplyTwo(const char* name, keel_array* a, keel_array* b) {
    keel_op* op = nullptr;
    ASSERT_EQ(keel_op_new(context_, GetParam(), name, 0, nullptr, nullptr, 0, &op, nullptr), KEEL_OK);
    keel_array* in[] = {a, b};
    ExpectNothing(name, [&](keel_array** out) { return keel_apply(op, in, 2, out, 1, nullptr); });
    keel_op_free(op);
  }

  void RunPlan(const std::string& function, std::vector<keel_array*> in) {
    keel_module* module = nullptr;
    keel_session* session = nullptr;
    keel_plan* plan = nullptr;
    std::string text = "keel 1 opset core 1\n\n" + function;
    ASSERT_EQ(keel_module_parse(context_, text.c_str(), text.size(), &module, nullptr), KEEL_OK);
    ASSERT_EQ(keel_session_new(module, GetParam(), nullptr, 0, &session, nullptr), KEEL_OK);
    ASSERT_EQ(keel_plan_new(session, nullptr, 0, nullptr, 0, nullptr, 0, &plan, nullptr), KEEL_OK);
    ExpectNothing(function.c_str(), [&](keel_array** out) {
      return keel_plan_run(plan, in.data(), static_cast<uint32_t>(in.size()), out, 1, nullptr);
    });
    keel_plan_free(plan);
    keel_session_free(session);
    keel_module_free(module);
  }

  keel_context* context_ = nullptr;
  std::vector<keel_array*> arrays_;
};

TEST(Counters, SeeWhatLibkeelDoes) {
  counting = true;
  keel_context* context = nullptr;
  keel_context_new(nullptr, 0, &context, nullptr);
  keel_plugin_load(context, nullptr, nullptr);
  keel_context_free(context);
  counting = false;
  EXPECT_GT(allocations.exchange(0), 10);
  EXPECT_GT(frees.exchange(0), 10);
  EXPECT_GT(locks.exchange(0), 0);
}

TEST_P(Warm, ApplyOfScalarsVectorsAndBroadcasts) {
  keel_array* scalar = Filled(KEEL_F32, {}, 1.5f);
  keel_array* vector = Filled(KEEL_F32, {1000}, 1.5f);
  ApplyTwo("add", scalar, scalar);
  ApplyTwo("mul", vector, vector);
  ApplyTwo("add", vector, scalar);
  ApplyTwo("less", vector, vector);
  if (std::string(GetParam()) == "cpu")  // the reference device favours simplicity over speed
    ApplyTwo("add", Filled(KEEL_F32, {4, 1}, 1.0f), Filled(KEEL_F32, {1, 4}, 1.0f));
}

TEST_P(Warm, ApplyOfMatmul) {
  keel_array* matrix = Filled(KEEL_I32, {10, 10}, 1);
  ApplyTwo("matmul", matrix, matrix);
}

TEST_P(Warm, PlansOfFixedAndOfSymbolicSizes) {
  keel_array* scalar = Filled(KEEL_F32, {}, 0.5f);
  RunPlan("fn @main(a: f32[], b: f32[]) -> f32[] {\n  y = add(mul(a, b), b)\n  return y\n}\n",
          {scalar, scalar});
  RunPlan("fn @main(a: f32[n], b: f32[]) -> f32[n] {\n  y = add(mul(a, b), b)\n  return y\n}\n",
          {Filled(KEEL_F32, {100}, 1.0f), scalar});
  RunPlan("fn @main(x: i32[n, n]) -> i32[n, n] {\n  y = matmul(x, matmul(x, x))\n  return y\n}\n",
          {Filled(KEEL_I32, {10, 10}, 1)});
}

// Alternating sizes: both runners stay cached.
TEST_P(Warm, PlanOfSizesInTurn) {
  keel_module* module = nullptr;
  keel_session* session = nullptr;
  keel_plan* plan = nullptr;
  std::string text =
      "keel 1 opset core 1\n\nfn @main(a: f32[n]) -> f32[n] {\n  y = add(a, a)\n  return y\n}\n";
  ASSERT_EQ(keel_module_parse(context_, text.c_str(), text.size(), &module, nullptr), KEEL_OK);
  ASSERT_EQ(keel_session_new(module, GetParam(), nullptr, 0, &session, nullptr), KEEL_OK);
  ASSERT_EQ(keel_plan_new(session, nullptr, 0, nullptr, 0, nullptr, 0, &plan, nullptr), KEEL_OK);
  keel_array* in[] = {Filled(KEEL_F32, {3}, 1.0f), Filled(KEEL_F32, {300}, 1.0f)};
  int turn = 0;
  ExpectNothing("sizes in turn",
                [&](keel_array** out) { return keel_plan_run(plan, &in[turn++ % 2], 1, out, 1, nullptr); });
  keel_plan_free(plan);
  keel_session_free(session);
  keel_module_free(module);
}

// A program of one addition in the context of the arguments.
keel_rc AddThem(void* op, keel_trace* trace, const keel_leaf* in, uint32_t, keel_error** err) {
  keel_array *operands[] = {in[0].array, in[1].array}, *y = nullptr;
  keel_rc rc = keel_trace_apply(trace, nullptr, static_cast<keel_op*>(op), operands, 2, &y, 1, err);
  if (rc == KEEL_OK) rc = keel_trace_result(trace, "y", y, err);
  keel_array_free(y);
  return rc;
}

TEST_P(Warm, CallsOfFunctions) {
  keel_op* add = nullptr;
  keel_function* f = nullptr;
  ASSERT_EQ(keel_op_new(context_, GetParam(), "add", 0, nullptr, nullptr, 0, &add, nullptr), KEEL_OK);
  ASSERT_EQ(keel_function_new(context_, "f", GetParam(), nullptr, 0, AddThem, add, nullptr, &f, nullptr),
            KEEL_OK);
  keel_leaf leaves[2][3] = {};
  for (int size = 0; size < 2; size++) {
    keel_array* x = Filled(KEEL_F32, {3 + size}, 1.0f);
    for (int i = 0; i < 2; i++) leaves[size][i] = {KEEL_LEAF_ARRAY, 0, nullptr, x, 0, 0, nullptr};
    leaves[size][2] = {KEEL_LEAF_STR, 0, nullptr, nullptr, 0, 0, "static"};
  }
  int turn = 0;
  ExpectNothing("two sizes in turn", [&](keel_array** out) {
    uint32_t n = 0;
    return keel_function_call(f, nullptr, nullptr, "(a,a,s)", leaves[turn++ % 2], 3, out, 1, &n, nullptr);
  });
  keel_function_free(f);
  keel_op_free(add);
}

INSTANTIATE_TEST_SUITE_P(Devices, Warm, testing::Values("cpu", "reference"),
                         [](const auto& i) { return std::string(i.param); });

}  // namespace
