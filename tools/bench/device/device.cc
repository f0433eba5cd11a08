// device.cc: host time of launches on a device that does nothing (tests/devices/null): eager ops from C and
// C++, and plans of 1 to 2000 launches, recorded or not. device.py is the same from Python. Usage:
// bench_device [PART OF A NAME]. BENCH_DEVICE and BENCH_PLUGIN: another device, in processor time of the
// calling thread. See ../README.md.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <keel/keel.hpp>

#include "../hot/harness.h"

namespace {

using hot::Call;
using hot::Figure;

const char* Variable(const char* name, const char* otherwise) {
  const char* value = getenv(name);
  return value ? value : otherwise;
}
const char* const kPlugin = Variable("BENCH_PLUGIN", KEEL_NULL_PLUGIN);
const char* const kDevice = Variable("BENCH_DEVICE", "null");

keel_context* context = nullptr;

struct Bench {
  std::string wanted;
  std::vector<Figure> figures;

  template <class Body>
  void Add(const char* name, double limit, double work, Body body) {
    if (std::string(name).find(wanted) != std::string::npos)
      figures.push_back(hot::Measure(name, limit, work, body));
  }
};

keel_array* There(keel_context* c, std::vector<int64_t> shape) {
  keel_array *host = hot::Filled(c, KEEL_F32, std::move(shape), 1.5f), *there = nullptr;
  Call(keel_array_to, c, host, kDevice, &there);
  keel_array_free(host);
  return there;
}

void Eager(Bench& b) {
  keel_op *add = hot::Bind(context, kDevice, "add"), *gather = hot::Bind(context, kDevice, "gather");
  keel_array *x = There(context, {8}), *one = There(context, {}), *row = nullptr;
  keel_array* index = hot::Filled(context, KEEL_I32, {8}, 1);
  Call(keel_array_to, context, index, kDevice, &row);
  auto apply = [](keel_op* op, keel_array* p, keel_array* q) {
    keel_array *in[] = {p, q}, *y;
    if (keel_apply(op, in, 2, &y, 1, nullptr) != KEEL_OK) std::abort();
    return y;
  };
  auto once = [&](keel_op* op, keel_array* p, keel_array* q) {
    return [=] { keel_array_free(apply(op, p, q)); };
  };
  b.Add("C: add, two arrays of 8 f32", 600, 1, once(add, x, x));
  b.Add("C: add, an array and a scalar", 600, 1, once(add, x, one));
  keel_array* y = There(context, {8});
  b.Add("C: add, dependent chain", 600, 1, [&] {
    keel_array* before = std::exchange(y, apply(add, y, x));
    keel_array_free(before);
  });
  b.Add("C: gather, which may fail", 0, 1, once(gather, x, row));
  for (keel_array* a : {x, one, row, index, y}) keel_array_free(a);
  keel_op_free(add);
  keel_op_free(gather);
}

void Sdk(Bench& b) {
  keel::Context context;
  context.load_plugin(kPlugin);
  keel::Scope on(context, kDevice);
  keel::Tensor x = keel::zeros({8}).to(kDevice);
  b.Add("C++: a + a", 0, 1, [&] { keel::Tensor z = x + x; });
  b.Add("C++: a + 1.f, a weak literal", 0, 1, [&] { keel::Tensor z = x + 1.f; });
}

std::string Chain(int launches) {
  std::string body, last = "a";
  for (int i = 0; i < launches; i++) {
    std::string next = "s" + std::to_string(i);
    body += "  " + next + " = add(" + last + ", b)\n";
    last = next;
  }
  return "keel 1 opset core 1\n\nfn @main(a: f32[8], b: f32[8]) -> f32[8] {\n" + body + "  return " + last +
         "\n}\n";
}

double Plan(Bench& b, int launches, const char* how = "") {
  hot::Prepared p(context, kDevice, Chain(launches), {{"results", "device"}, {"level", "0"}});
  keel_array *x = There(context, {8}), *in[] = {x, x};
  const std::string name = "plan of " + std::to_string(launches) + " launches" + how;
  b.Add(name.c_str(), 0, 1, [&] {
    keel_array* y = nullptr;
    if (keel_plan_run(p.plan, in, 2, &y, 1, nullptr) != KEEL_OK) std::abort();
    keel_array_free(y);
  });
  keel_array_free(x);
  return b.figures.empty() || b.figures.back().name != name ? 0 : b.figures.back().median;
}

// What Keel adds to each launch is the slope between the two lengths.
void Plans(Bench& b) {
  for (int launches : {1, 3, 4, 20, 200, 2000}) Plan(b, launches);
  setenv("NULL_RECORD", "0", 1);
  double few = Plan(b, 20, ", not recorded"), many = Plan(b, 200, ", not recorded");
  unsetenv("NULL_RECORD");
  if (few && many) b.figures.push_back({"plan: each launch, not recorded", (many - few) / 180, 0, 0, 300});
}

// The second run of a plan records it, the third replays it.
void Recording(Bench& b) {
  constexpr int kLaunches = 2000, kPlans = 15;
  std::vector<double> each;
  keel_array *x = There(context, {8}), *in[] = {x, x};
  for (int i = 0; i < kPlans; i++) {
    hot::Prepared p(context, kDevice, Chain(kLaunches), {{"results", "device"}, {"level", "0"}});
    double last = 0;
    for (int run = 0; run < 3; run++) {
      keel_array* y = nullptr;
      const auto begin = std::chrono::steady_clock::now();
      if (keel_plan_run(p.plan, in, 2, &y, 1, nullptr) != KEEL_OK) std::abort();
      const double ns =
          std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
      keel_array_free(y);
      if (run == 2) each.push_back((last - ns) / kLaunches);
      last = ns;
    }
  }
  keel_array_free(x);
  std::ranges::sort(each);
  b.figures.push_back({"plan: each launch, recorded", each[kPlans / 2], each[0], each[kPlans - 1], 100});
}

// Waits for all work on the device: its queue is in order.
void Settle() {
  static keel_op* const add = hot::Bind(context, kDevice, "add");
  static keel_array* const one = There(context, {});
  keel_array *in[] = {one, one}, *y = nullptr;
  Call(keel_apply, add, in, size_t{2}, &y, size_t{1});
  Call(keel_array_wait, y);
  keel_array_free(y);
}

}  // namespace

int main(int argc, char** argv) {
  Bench b{};
  if (argc > 1) b.wanted = argv[1];
  const keel_kv options[] = {{"threads", "1"}};
  hot::processor_time_only = getenv("BENCH_DEVICE") != nullptr;
  setenv("NULL_COMPUTE", "0", 1);  // before the plugin is loaded
  Call(keel_context_new, static_cast<const keel_kv*>(options), 1u, &context);
  Call(keel_plugin_load, context, kPlugin);
  if (hot::processor_time_only) hot::settle = Settle;
  Eager(b);
  Sdk(b);
  Plans(b);
  if (b.wanted.empty() || b.wanted == "plan") Recording(b);
  keel_context_free(context);
  for (const Figure& f : b.figures) {
    std::printf("%-36s %9.1f ns %9.1f %9.1f", f.name.c_str(), f.median, f.low, f.high);
    if (f.limit > 0) std::printf("  limit %.0f%s", f.limit, f.median > f.limit ? ", missed" : "");
    std::printf("\n");
  }
}
