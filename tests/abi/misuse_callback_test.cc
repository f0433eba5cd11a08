// misuse_callback_test.cc: failures of programs and blocks become errors of the call that ran them; nothing
// leaks.
#include "misuse.h"

#include <stdexcept>
#include <utility>

#include "tests/live_bytes.h"

namespace {

using namespace misuse;

class MisusedCallbacks : public Misuse {};

keel_rc Undeclared(void*, keel_trace*, const keel_leaf*, uint32_t, keel_error**) { return 77; }
keel_rc Negative(void*, keel_trace*, const keel_leaf*, uint32_t, keel_error**) { return -7777; }
keel_rc Wordless(void*, keel_trace*, const keel_leaf*, uint32_t, keel_error**) { return KEEL_RANGE; }
keel_rc BothWays(void*, keel_trace* t, const keel_leaf*, uint32_t, keel_error** err) {
  keel_trace_result(t, nullptr, nullptr, err);
  return KEEL_OK;
}
keel_rc Throws(void*, keel_trace*, const keel_leaf*, uint32_t, keel_error**) {
  throw std::runtime_error("from the program");
}
keel_rc ThrowsNumber(void*, keel_trace*, const keel_leaf*, uint32_t, keel_error**) { throw 7; }

TEST_F(MisusedCallbacks, WhatACallbackDoesWrongIsToldAsSuch) {
  struct Case {
    keel_program program;
    keel_rc code;
    std::string words;
  };
  for (const Case& c :
       {Case{Undeclared, KEEL_UNKNOWN, "returned 77, which is not a Keel error code"},
        Case{Negative, KEEL_UNKNOWN, "returned -7777, which is not a Keel error code"},
        Case{Wordless, KEEL_RANGE,
             "the program returned " + std::to_string(KEEL_RANGE) + " without an error"},
        Case{BothWays, KEEL_INVALID, "returned KEEL_OK but stored an error: keel_trace_result: 'array'"},
        Case{Throws, KEEL_UNKNOWN, "threw a C++ exception: from the program"},
        Case{ThrowsNumber, KEEL_UNKNOWN, "threw a C++ exception"}})
    for (int eagerly : {0, 1}) {
      keel_function* f = nullptr;
      Ok(keel_function_new(context_, "f", "reference", nullptr, 0, c.program, nullptr, nullptr, &f, &error_));
      keel_run_eagerly(nullptr, f, eagerly);
      keel_array* out = nullptr;
      uint32_t n = 0;
      EXPECT_EQ(keel_function_call(f, nullptr, nullptr, "", leaves_.data(), 1, &out, 1, &n, &error_), c.code);
      std::string said = Said();
      EXPECT_NE(said.find(c.words), std::string::npos) << said;
      keel_function_free(f);
    }
}

// Errors that a callback makes, in each way that leaves one behind or drops one.
enum class Way { kWithOk, kUnknownCode, kOtherCode, kReplaced, kReplacedThenOk, kThrows };
constexpr Way kWays[] = {Way::kWithOk,   Way::kUnknownCode,    Way::kOtherCode,
                         Way::kReplaced, Way::kReplacedThenOk, Way::kThrows};
keel_rc FailIn(Way way, keel_error** err) {
  keel_rc code = keel_error_new(KEEL_RANGE, "the first error", err);
  if (way == Way::kThrows) throw std::runtime_error("after an error");
  if (way == Way::kReplaced || way == Way::kReplacedThenOk) {
    keel_error_free(*err);
    code = keel_error_new(KEEL_OOM, "the second error", err);
  }
  return way == Way::kWithOk || way == Way::kReplacedThenOk ? KEEL_OK
         : way == Way::kUnknownCode                         ? 4711
         : way == Way::kOtherCode                           ? KEEL_EXISTS
                                                            : code;
}
keel_rc ProgramFails(void* way, keel_trace*, const keel_leaf*, uint32_t, keel_error** err) {
  return FailIn(*static_cast<Way*>(way), err);
}
keel_rc BlockFails(void* way, keel_trace*, keel_array* const*, uint32_t, keel_error** err) {
  return FailIn(*static_cast<Way*>(way), err);
}
struct Expected {
  keel_rc code;
  const char* words;
};
Expected ExpectedOf(Way way) {
  switch (way) {
    case Way::kWithOk:
      return {KEEL_INVALID, "returned KEEL_OK but stored an error: the first error"};
    case Way::kUnknownCode:
      return {KEEL_UNKNOWN, "returned 4711, which is not a Keel error code: the first error"};
    case Way::kOtherCode:
      return {KEEL_RANGE, "the first error"};
    case Way::kReplaced:
      return {KEEL_OOM, "the second error"};
    case Way::kReplacedThenOk:
      return {KEEL_INVALID, "returned KEEL_OK but stored an error: the second error"};
    default:
      return {KEEL_UNKNOWN, "threw a C++ exception: after an error"};
  }
}

// The sanitizer finds an error that is freed twice or never; elsewhere the heap must not grow.
TEST_F(MisusedCallbacks, AnErrorOfACallbackIsFreedOnce) {
  keel_array* flag = nullptr;
  Ok(keel_array_new(context_, KEEL_BOOL, nullptr, 0, &flag, &error_));
  for (Way way : kWays) {
    const Expected want = ExpectedOf(way);
    double live[2] = {};
    for (int round = 0; round < 2; round++) {
      for (int i = 0; i < 200; i++) {
        keel_function* f = nullptr;
        Ok(keel_function_new(context_, "f", "reference", nullptr, 0, ProgramFails, &way, nullptr, &f,
                             &error_));
        keel_run_eagerly(nullptr, f, i % 2);
        keel_array* out[1] = {};
        uint32_t n = 0;
        ExpectError(keel_function_call(f, nullptr, nullptr, "", leaves_.data(), 1, out, 1, &n, &error_),
                    want.code, want.words);
        ExpectError(keel_trace_cond(nullptr, flag, BlockFails, &way, BlockFails, &way, out, 1, &n, &error_),
                    want.code, want.words);
        EXPECT_EQ(keel_function_call(f, nullptr, nullptr, "", leaves_.data(), 1, out, 1, &n, nullptr),
                  want.code);
        keel_function_free(f);
      }
      live[round] = keel_test::LiveBytes();
    }
    EXPECT_LT(live[1] - live[0], 200.0 * sizeof(void*)) << "errors are not freed: " << want.words;
  }
  keel_array_free(flag);
}

int32_t ObserverThrows(void*, const keel_event*) { throw std::runtime_error("from the observer"); }
void HookThrows(void*, int32_t, const char*, uint64_t) { throw std::runtime_error("from the hook"); }

TEST_F(MisusedCallbacks, ExceptionsOfObserversAndHooksAreToldAsSuch) {
  keel_kv observe = {"observe", "1"};
  keel_session* s = nullptr;
  keel_plan* plan = nullptr;
  keel_array* out = nullptr;
  Ok(keel_session_new(module_, "reference", &observe, 1, &s, &error_));
  Ok(keel_plan_new(s, nullptr, 0, nullptr, 0, nullptr, 0, &plan, &error_));
  EXPECT_EQ(keel_plan_run_observed(plan, &array_, 1, &out, 1, ObserverThrows, nullptr, &error_),
            KEEL_UNKNOWN);
  EXPECT_EQ(Said().rfind("the observer threw a C++ exception: from the observer | catch it", 0), 0u);
  Ok(keel_plan_run_observed(plan, &array_, 1, &out, 1, NoEvent, nullptr, &error_));
  keel_array_free(out);
  keel_plan_free(plan);
  keel_session_free(s);
  keel_op* print = nullptr;
  Ok(keel_op_new(context_, "reference", "print", 0, nullptr, nullptr, 0, &print, &error_));
  keel_print_hook(context_, HookThrows, nullptr);
  for (int again = 0; again < 2; again++) {
    EXPECT_EQ(keel_apply(print, &array_, 1, nullptr, 0, &error_), KEEL_UNKNOWN);
    std::string said = Said();
    EXPECT_NE(said.find("the hook of print threw a C++ exception: from the hook"), std::string::npos) << said;
  }
  keel_print_hook(context_, NoPrint, nullptr);
  Ok(keel_apply(print, &array_, 1, nullptr, 0, &error_));
  keel_op_free(print);
}

keel_function* own = nullptr;
keel_rc FreesItself(void*, keel_trace*, const keel_leaf*, uint32_t, keel_error**) {
  keel_function_free(own);
  return KEEL_OK;
}
keel_rc FreesItsTrace(void*, keel_trace* t, const keel_leaf*, uint32_t, keel_error**) {
  keel_trace_free(t);
  return KEEL_OK;
}
keel_rc EndsItsTrace(void*, keel_trace* t, const keel_leaf*, uint32_t, keel_error** err) {
  keel_module* m = nullptr;
  return keel_trace_end(t, &m, err);
}
keel_rc BlockFreesItsTrace(void*, keel_trace* t, keel_array* const*, uint32_t, keel_error**) {
  keel_trace_free(t);
  return KEEL_OK;
}
keel_rc BlockEndsItsBody(void*, keel_trace* t, keel_array* const*, uint32_t, keel_error** err) {
  return keel_body_end(t, err);
}

TEST_F(MisusedCallbacks, WhatIsBorrowedIsNotGivenBack) {
  struct Case {
    keel_program program;
    const char* words;
  };
  for (const Case& c : {Case{FreesItself, "freed its own function"}, Case{FreesItsTrace, "freed its trace"},
                        Case{EndsItsTrace, "keel_trace_end: 'trace' is borrowed"}})
    for (int eagerly : {0, 1}) {
      Ok(keel_function_new(context_, "f", "reference", nullptr, 0, c.program, nullptr, nullptr, &own,
                           &error_));
      keel_run_eagerly(nullptr, own, eagerly);
      keel_array* out = nullptr;
      uint32_t n = 0;
      for (int again = 0; again < 2; again++)
        ExpectInvalid(keel_function_call(own, nullptr, nullptr, "", leaves_.data(), 1, &out, 1, &n, &error_),
                      c.words);
      keel_function_free(own);
    }
  keel_array *one = nullptr, *out = nullptr;
  Ok(keel_array_new(context_, KEEL_I32, nullptr, 0, &one, &error_));
  Ok(keel_array_new(context_, KEEL_BOOL, nullptr, 0, &out, &error_));
  keel_array* results[1] = {};
  uint32_t n = 0;
  for (keel_block block : {BlockFreesItsTrace, BlockEndsItsBody})
    ExpectInvalid(keel_trace_cond(nullptr, out, block, nullptr, block, nullptr, results, 1, &n, &error_),
                  block == BlockFreesItsTrace ? "freed its trace" : "keel_body_end: 'body' is");
  keel_array_free(one);
  keel_array_free(out);
}

keel_context* closing = nullptr;
keel_rc ClosesItsContext(void*, keel_trace* t, const keel_leaf* leaves, uint32_t, keel_error** err) {
  keel_context_free(std::exchange(closing, nullptr));
  return keel_trace_result(t, nullptr, leaves[0].array, err);
}

TEST_F(MisusedCallbacks, AProgramMayGiveNoResultsOrCloseItsContext) {
  keel_array* out = nullptr;
  uint32_t n = 77;
  Ok(keel_function_call(function_, nullptr, nullptr, "", leaves_.data(), 1, &out, 1, &n, &error_));
  EXPECT_EQ(n, 0u);
  keel_function* f = nullptr;
  Ok(keel_context_new(nullptr, 0, &closing, &error_));
  Ok(keel_plugin_load(closing, KEEL_TEST_PLUGINS "/keel-reference.so", &error_));
  Ok(keel_function_new(closing, "f", "reference", nullptr, 0, ClosesItsContext, nullptr, nullptr, &f,
                       &error_));
  Ok(keel_function_call(f, nullptr, nullptr, "", leaves_.data(), 1, &out, 1, &n, &error_));
  EXPECT_EQ(n, 1u);
  keel_array_free(out);
  keel_function_free(f);
}

keel_variable* counter = nullptr;
keel_rc Counts(void* one, keel_trace* t, const keel_leaf* leaves, uint32_t, keel_error** err) {
  keel_rc rc = keel_variable_write(counter, t, "assign_add", static_cast<keel_array*>(one), err);
  for (int i = 0; i < 2 && rc == KEEL_OK; i++) rc = keel_trace_result(t, nullptr, leaves[0].array, err);
  return rc;
}

TEST_F(MisusedCallbacks, TooLittleRoomIsSaidBeforeAnythingIsWritten) {
  keel_tensor t;
  keel_array_tensor(array_, &t);
  static_cast<float*>(t.data)[0] = 1;
  counter = variable_;
  keel_function* f = nullptr;
  Ok(keel_function_new(context_, "f", "reference", nullptr, 0, Counts, array_, nullptr, &f, &error_));
  keel_array *out[2], *value = nullptr;
  uint32_t n = 0;
  auto count = [&] {
    Ok(keel_variable_read(variable_, nullptr, nullptr, &value, &error_));
    keel_array_tensor(value, &t);
    float now = static_cast<float*>(t.data)[0];
    keel_array_free(value);
    return now;
  };
  ExpectInvalid(keel_function_call(f, nullptr, nullptr, "", leaves_.data(), 1, out, 1, &n, &error_),
                "2 results, but 'out' has room for 1");
  EXPECT_EQ(count(), 0) << "a call that failed wrote";
  for (int call = 1; call <= 2; call++) {
    Ok(keel_function_call(f, nullptr, nullptr, "", leaves_.data(), 1, out, 2, &n, &error_));
    for (keel_array* a : out) keel_array_free(a);
    ExpectInvalid(keel_function_call(f, nullptr, nullptr, "", leaves_.data(), 1, out, 1, &n, &error_),
                  "'out' has room for 1");
    EXPECT_EQ(count(), call) << "a warm call that failed wrote";
  }
  keel_function_free(f);
}

keel_rc GivesItsArray(void* array, keel_trace* t, keel_array* const*, uint32_t, keel_error** err) {
  return keel_trace_result(t, nullptr, static_cast<keel_array*>(array), err);
}

TEST_F(MisusedCallbacks, TooLittleRoomAddsNothingToATrace) {
  keel_array *flag = nullptr, *out[1] = {};
  keel_trace* bodies[2] = {};
  uint32_t n = 77;
  auto nodes = [&] {
    keel_module* m = nullptr;
    keel_graph* g = nullptr;
    uint32_t count = 77;
    Ok(keel_trace_module(trace_, &m, &error_));
    Ok(keel_module_graph(m, "trace", &g, &error_));
    Ok(keel_graph_counts(g, &count, nullptr, nullptr, nullptr, &error_));
    keel_module_free(m);
    return count;
  };
  Ok(keel_trace_param(trace_, "flag", KEEL_BOOL, nullptr, 0, &flag, &error_));
  auto cond = [&](uint32_t room) {
    return keel_trace_cond(nullptr, flag, GivesItsArray, array_, GivesItsArray, array_, out, room, &n,
                           &error_);
  };
  auto entry = [&](uint32_t room) {
    return keel_trace_entry(trace_, nullptr, module_, nullptr, &array_, 1, out, room, &n, &error_);
  };
  auto run = [&](uint32_t room) {
    return keel_body_run("cond", &flag, 1, nullptr, 0, bodies, 2, -1, 0, out, room, &n, &error_);
  };
  for (uint32_t b = 0; b < 2; b++) {
    Ok(keel_body_begin(trace_, nullptr, b ? "else" : "then", nullptr, 0, 0, KEEL_BODY_BRANCH, &bodies[b],
                       nullptr, &error_));
    Ok(keel_trace_result(bodies[b], nullptr, array_, &error_));
    Ok(keel_body_end(bodies[b], &error_));
  }
  ExpectInvalid(cond(0), "1 results, but 'out' has room for 0");
  ExpectInvalid(entry(0), "1 results, but 'out' has room for 0");
  ExpectInvalid(run(0), "1 results, but 'out' has room for 0");
  EXPECT_EQ(nodes(), 0u);
  EXPECT_EQ(n, 77u);
  Ok(cond(1));
  keel_array_free(out[0]);
  Ok(entry(1));
  keel_array_free(out[0]);
  Ok(run(1));  // the bodies still serve
  keel_array_free(out[0]);
  EXPECT_EQ(nodes(), 3u);
  for (keel_trace* body : bodies) keel_trace_free(body);
  keel_array_free(flag);
}

}  // namespace
