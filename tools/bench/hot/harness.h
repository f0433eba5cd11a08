// harness.h: timing of short calls, and wrappers for the C functions that every figure uses. Any failure
// exits the program with libkeel's message.
#pragma once

#include <abi/keel.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

namespace hot {

struct Figure {  // ns per call (or node), over many batches
  std::string name;
  double median, low, high;  // low and high: 10th and 90th percentile
  double limit;              // 0: none stated
};

inline double Now() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

inline Figure Summarise(std::string name, double limit, std::vector<double> ns) {
  std::sort(ns.begin(), ns.end());
  auto at = [&](double q) { return ns[static_cast<size_t>(q * static_cast<double>(ns.size() - 1))]; };
  return {std::move(name), at(0.5), at(0.1), at(0.9), limit};
}

inline double ProcessorNow() {  // of this thread
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e9 * static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec);
}

inline bool processor_time_only = false;  // for devices whose work runs on the same cores
inline void (*settle)() = [] {};          // before each batch: waits until a device has nothing to do

// body() performs `work` units and the figure is the time of one; batches take about 50 microseconds. Calls
// of milliseconds run fewer times and are measured in processor time, because other processes would interrupt
// them.
template <class Body>
Figure Measure(std::string name, double limit, double work, Body body) {
  constexpr double kWarm = 0.3e9, kLong = 1.5e9;
  double start = Now();
  int times = 0;
  for (; times < 200 && (times < 3 || Now() - start < kWarm); times++) body();
  start = Now();
  times = std::min(times, 50);
  for (int i = 0; i < times; i++) body();
  const double once = std::max(1.0, (Now() - start) / times), begin = Now();
  const int batch = std::max(1, static_cast<int>(50e3 / once));
  double (*now)() = processor_time_only || once > 1e6 ? ProcessorNow : Now;
  std::vector<double> ns;
  for (int b = 0; b < 401 && (b < 15 || Now() - begin < kLong); b++) {
    settle();
    start = now();
    for (int i = 0; i < batch; i++) body();
    ns.push_back((now() - start) / batch / work);
  }
  return Summarise(std::move(name), limit, std::move(ns));
}

inline void Check(keel_rc rc, keel_error* error) {
  if (rc == KEEL_OK) return;
  std::fprintf(stderr, "hot: %s\n", error ? keel_error_text(error, KEEL_ERROR_MESSAGE) : "failed");
  std::exit(1);
}
template <class F, class... A>
void Call(F f, A... args) {
  keel_error* error = nullptr;
  keel_rc rc = f(args..., &error);
  Check(rc, error);
}

template <class T>
keel_array* Filled(keel_context* c, keel_dt dtype, std::vector<int64_t> shape, T value) {
  keel_array* a = nullptr;
  Call(keel_array_new, c, dtype, static_cast<const int64_t*>(shape.data()),
       static_cast<int32_t>(shape.size()), &a);
  keel_tensor t;
  keel_array_tensor(a, &t);
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  std::fill_n(static_cast<T*>(t.data), n, value);
  return a;
}

inline keel_op* Bind(keel_context* c, const char* device, const char* name) {
  keel_op* op = nullptr;
  Call(keel_op_new, c, device, name, 0u, static_cast<const char* const*>(nullptr),
       static_cast<const keel_attr*>(nullptr), 0u, &op);
  return op;
}

// A plan for the only entry of a module in text form.
struct Prepared {
  keel_module* module = nullptr;
  keel_session* session = nullptr;
  keel_plan* plan = nullptr;
  Prepared(keel_context* c, const char* device, const std::string& text, std::vector<keel_kv> options = {}) {
    Call(keel_module_parse, c, text.c_str(), static_cast<uint64_t>(text.size()), &module);
    Call(keel_session_new, module, device, static_cast<const keel_kv*>(options.data()),
         static_cast<uint32_t>(options.size()), &session);
    const char* const* none = nullptr;
    Call(keel_plan_new, session, none, 0u, none, 0u, none, 0u, &plan);
  }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
  ~Prepared() {
    keel_plan_free(plan);
    keel_session_free(session);
    keel_module_free(module);
  }
};

}  // namespace hot
