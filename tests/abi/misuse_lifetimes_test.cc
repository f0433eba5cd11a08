// misuse_lifetimes_test.cc: objects that outlive their context, calls from callbacks, leaked contexts.
#include "misuse.h"

#include <thread>

namespace {

using namespace misuse;

class MisusedLifetimes : public Misuse {
 protected:
  // Objects of a closed context.
  struct Closed {
    keel_array* array = nullptr;
    keel_op* op = nullptr;
    keel_variable* variable = nullptr;
    keel_plan* plan = nullptr;
  };
  void OpenAndClose(Closed* out) {
    keel_context* c = nullptr;
    keel_module* m = nullptr;
    keel_session* s = nullptr;
    Ok(keel_context_new(nullptr, 0, &c, &error_));
    Ok(keel_plugin_load(c, KEEL_TEST_PLUGINS "/keel-reference.so", &error_));
    Ok(keel_array_new(c, KEEL_F32, kShape, 1, &out->array, &error_));
    Ok(keel_variable_new(c, nullptr, out->array, nullptr, 0, &out->variable, &error_));
    Ok(keel_op_new(c, "reference", "neg", 0, nullptr, nullptr, 0, &out->op, &error_));
    Ok(keel_module_parse(c, kText, std::char_traits<char>::length(kText), &m, &error_));
    Ok(keel_session_new(m, "reference", nullptr, 0, &s, &error_));
    Ok(keel_plan_new(s, nullptr, 0, nullptr, 0, nullptr, 0, &out->plan, &error_));
    keel_context_free(c);
    keel_module_free(m);
    keel_session_free(s);
  }
};

TEST_F(MisusedLifetimes, ObjectsKeepWhatTheyNeedOfAClosedContext) {
  Closed kept;
  OpenAndClose(&kept);
  keel_array *negated = nullptr, *ran = nullptr, *read = nullptr, *foreign = nullptr;
  Ok(keel_apply(kept.op, &kept.array, 1, &negated, 1, &error_));
  Ok(keel_plan_run(kept.plan, &kept.array, 1, &ran, 1, &error_));
  Ok(keel_variable_read(kept.variable, nullptr, nullptr, &read, &error_));
  keel_tensor t;
  keel_array_tensor(read, &t);
  EXPECT_EQ(static_cast<float*>(t.data)[0], 0);
  Ok(keel_apply(op_, &kept.array, 1, &foreign, 1, &error_));  // an op of another context
  for (keel_array* a : {kept.array, negated, ran, read, foreign}) keel_array_free(a);
  keel_plan_free(kept.plan);
  keel_op_free(kept.op);
  keel_variable_free(kept.variable);
}

TEST_F(MisusedLifetimes, SymbolicArraysBelongToOneTrace) {
  keel_trace* other = nullptr;
  keel_op* add = nullptr;
  keel_array *in[2] = {}, *out = nullptr;
  Ok(keel_trace_new(context_, "other", "reference", &other, &error_));
  Ok(keel_trace_param(trace_, "x", KEEL_F32, nullptr, 0, &in[0], &error_));
  Ok(keel_trace_param(other, "x", KEEL_F32, nullptr, 0, &in[1], &error_));
  Ok(keel_op_new(context_, "reference", "add", 0, nullptr, nullptr, 0, &add, &error_));
  ExpectInvalid(keel_apply(add, in, 2, &out, 1, &error_), "operands belong to two traces");
  EXPECT_TRUE(keel_array_symbolic(in[0]));
  keel_tensor t;
  keel_array_tensor(in[0], &t);
  EXPECT_EQ(t.data, nullptr);
  keel_variable* v = nullptr;
  ExpectInvalid(keel_variable_new(context_, nullptr, in[1], nullptr, 0, &v, &error_),
                "initial value depends on parameter \"x\"");
  ExpectError(keel_array_to(context_, in[1], nullptr, &out, &error_), KEEL_PRECONDITION, "is symbolic");
  keel_module* m = nullptr;
  ExpectError(keel_module_import(context_, file_.c_str(), nullptr, 0, names_.data(), &in[1], 1, &m, &error_),
              KEEL_PRECONDITION, "the value of \"x\" is symbolic");
  keel_trace_free(other);
  Survives("keel_apply", "in", [&] { return keel_apply(op_, &in[1], 1, Out<keel_array*>(), 1, &error_); });
  for (keel_array* a : in) keel_array_free(a);
  keel_op_free(add);
}

struct Reentered {
  keel_context* context;
  keel_op* op;
  keel_rc rc = KEEL_UNKNOWN;
};
void CallsKeel(void* arg) {
  auto* with = static_cast<Reentered*>(arg);
  const int64_t shape = 3;
  keel_array *x = nullptr, *y = nullptr;
  with->rc = keel_array_new(with->context, KEEL_F32, &shape, 1, &x, nullptr);
  if (with->rc == KEEL_OK) with->rc = keel_apply(with->op, &x, 1, &y, 1, nullptr);
  keel_array_free(x);
  keel_array_free(y);
}

TEST_F(MisusedLifetimes, AReleaseMayCallKeel) {
  float data[3] = {1, 2, 3};
  keel_tensor t = tensor_;
  t.data = data;
  Reentered with{context_, op_};
  keel_array* a = nullptr;
  keel_value v;
  Ok(keel_array_from_tensor(context_, &t, CallsKeel, &with, &a, &error_));
  Ok(keel_graph_constant(graph_, "held", a, &v, &error_));
  keel_array_free(a);
  EXPECT_EQ(with.rc, KEEL_UNKNOWN) << "the module holds it";
  keel_module_free(std::exchange(other_, nullptr));
  EXPECT_EQ(with.rc, KEEL_OK);
}

int32_t Stops(void* seen, const keel_event*) { return ++*static_cast<int*>(seen); }

TEST_F(MisusedLifetimes, AnObserverStopsARun) {
  keel_kv observe = {"observe", "1"};
  keel_session* s = nullptr;
  keel_plan* plan = nullptr;
  keel_array* out = nullptr;
  int seen = 0;
  Ok(keel_session_new(module_, "reference", &observe, 1, &s, &error_));
  Ok(keel_plan_new(s, nullptr, 0, nullptr, 0, nullptr, 0, &plan, &error_));
  ExpectError(keel_plan_run_observed(plan, &array_, 1, &out, 1, Stops, &seen, &error_), KEEL_CANCELLED,
              "stopped after \"y\" by its observer");
  EXPECT_EQ(seen, 1);
  keel_plan_free(plan);
  keel_session_free(s);
}

void TakesItselfAwayAndCancels(void* context, int32_t, const char*, uint64_t) {
  keel_print_hook(static_cast<keel_context*>(context), nullptr, nullptr);
  keel_context_cancel(static_cast<keel_context*>(context), 1);
}

TEST_F(MisusedLifetimes, AHookOfPrintMayTakeItselfAwayAndCancel) {
  keel_op* print = nullptr;
  keel_array* out = nullptr;
  Ok(keel_op_new(context_, "reference", "print", 0, nullptr, nullptr, 0, &print, &error_));
  keel_print_hook(context_, TakesItselfAwayAndCancels, context_);
  ExpectError(keel_apply(print, &array_, 1, nullptr, 0, &error_), KEEL_CANCELLED, "by keel_context_cancel");
  ExpectError(keel_apply(op_, &array_, 1, &out, 1, &error_), KEEL_CANCELLED, "by keel_context_cancel");
  keel_context_cancel(context_, 0);
  Ok(keel_apply(op_, &array_, 1, &out, 1, &error_));
  keel_array_free(out);
  keel_op_free(print);
}

TEST_F(MisusedLifetimes, AnotherThreadMayReleaseAnArray) {
  for (int i = 0; i < 20; i++) {
    keel_array* a = nullptr;
    Ok(keel_array_new(context_, KEEL_F32, kShape, 1, &a, &error_));
    std::thread([a] { keel_array_free(a); }).join();
  }
}

auto Entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

TEST_F(MisusedLifetimes, ContextsLeaveNoFilesAndNoThreads) {
  ptrdiff_t files = 0, threads = 0;
  for (int i = 0; i < 30; i++) {
    keel_context* c = nullptr;
    keel_op* exp = nullptr;
    keel_array* y = nullptr;
    Ok(keel_context_new(nullptr, 0, &c, &error_));
    Ok(keel_plugin_load(c, nullptr, &error_));
    Ok(keel_op_new(c, "reference", "exp", 0, nullptr, nullptr, 0, &exp, &error_));
    Ok(keel_apply(exp, &array_, 1, &y, 1, &error_));
    keel_array_free(y);
    keel_op_free(exp);
    keel_context_free(c);
    if (i == 0) files = Entries("/proc/self/fd"), threads = Entries("/proc/self/task");
  }
  EXPECT_EQ(Entries("/proc/self/fd"), files);
  EXPECT_EQ(Entries("/proc/self/task"), threads);
}

#if defined(__SANITIZE_ADDRESS__)
// Keel does not check for dead handles; AddressSanitizer reports their use.
TEST_F(MisusedLifetimes, AddressSanitizerSeesDeadHandles) {
  const char* dead = "heap-use-after-free|double-free";
  keel_array *a = nullptr, *y = nullptr;
  Ok(keel_array_new(context_, KEEL_F32, kShape, 1, &a, &error_));
  EXPECT_DEATH((keel_array_free(a), keel_array_free(a)), dead);
  EXPECT_DEATH((keel_array_free(a), keel_apply(op_, &a, 1, &y, 1, nullptr)), dead);
  keel_array_free(a);
  EXPECT_DEATH((keel_module_free(module_), keel_module_free(module_)), dead);
  EXPECT_DEATH((keel_context_free(context_), keel_context_free(context_)), dead);
  keel_value v;
  EXPECT_DEATH((keel_module_free(other_), keel_graph_param(graph_, "p", KEEL_F32, nullptr, 0, &v, nullptr)),
               dead);
  keel_plugin_load(nullptr, nullptr, &error_);
  EXPECT_DEATH((keel_error_free(error_), keel_error_free(error_)), dead);
}
#endif

}  // namespace
