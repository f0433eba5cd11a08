// devices.cc: the hostile device while allocations of libkeel fail (the device's own are exempt). Each
// scenario creates its own context, also exempt; it must work again afterwards.
#include <dlfcn.h>

#include "tests/faults/calls.h"
#include "tests/faults/inject.h"
#include "tests/faults/scenarios.h"

namespace keel::test {
namespace {

const char kModel[] = R"(keel 1
const w: f32[2, 3] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
const v: f32[2, 3] = [0.0, 1.0, 0.0, 1.0, 0.0, 1.0]

fn @main(x: f32[b, 2]) -> y: f32[b, 3] {
  u = sub(w, v) : f32[2, 3]
  t = add(u, v) : f32[2, 3]
  h = matmul(x, t) : f32[b, 3]
  y = relu(h) : f32[b, 3]
  return y
}

entry main = @main (x) -> (y)
)";
constexpr float kX[] = {1, 1, 2, -1}, kY[] = {5, 7, 9, 0, 0, 0};

struct Spared {
  Spared() { Spare(1); }
  ~Spared() { Spare(-1); }
};

bool Open(Calls& c, keel_context** context) {
  Spared all;
  void* library = dlopen(KEEL_TEST_HOSTILE, RTLD_NOW);  // stays loaded
  if (!library) return false;
  reinterpret_cast<void (*)(void (*)(int))>(dlsym(library, "hostile_spare"))(Spare);
  return c.Try(keel_context_new, nullptr, 0u, context) &&
         c.Try(keel_plugin_load, *context, KEEL_TEST_PLUGINS "/keel-cpu.so") &&
         c.Try(keel_plugin_load, *context, KEEL_TEST_PLUGINS "/keel-passes.so") &&
         c.Try(keel_plugin_load, *context, KEEL_TEST_HOSTILE);
}

// A plan with a constant part, fed from the host and from a device; its result moves to another device and
// back.
void Run(Calls& c, keel_context* context, const keel_kv* options, uint32_t n_options) {
  OwnModule module;
  OwnSession session;
  OwnPlan plan;
  OwnArray x, there;
  if (!c.Try(keel_module_parse, context, kModel, uint64_t{sizeof kModel - 1}, &module)) return;
  if (!c.Try(keel_session_new, module, "hostile:0", options, n_options, &session)) return;
  if (!c.Try(keel_plan_new, session, kNone, 0u, kNone, 0u, kNone, 0u, &plan)) return;
  if (!MakeArray(c, context, {kX, 4}, &x)) return;
  if (!c.Try(keel_array_to, context, static_cast<keel_array*>(x), "hostile:0", &there)) return;
  for (keel_array* feed : {static_cast<keel_array*>(x), static_cast<keel_array*>(there)}) {
    OwnArray y, moved, back;
    if (!c.Try(keel_plan_run, plan, &feed, 1u, &y, 1u)) return;
    if (!c.Try(keel_array_to, context, static_cast<keel_array*>(y), "hostile:1", &moved)) return;
    if (!c.Try(keel_array_to, context, static_cast<keel_array*>(moved), nullptr, &back)) return;
    c.outcome.right = c.outcome.right && Equals(back, kY, 6);
  }
}

Outcome RunTwice(const keel_kv* options, uint32_t n_options) {
  Calls c;
  keel_context* context = nullptr;
  if (Open(c, &context)) Run(c, context, options, n_options);
  Spared rest;
  Calls again;
  Run(again, context, options, n_options);
  if (again.outcome.rc != KEEL_OK || !again.outcome.right) {
    c.outcome = {KEEL_INTERNAL, "", true};
    std::snprintf(c.outcome.message, sizeof c.outcome.message, "the device does not work any more: %.400s",
                  again.outcome.message);
  }
  keel_context_free(context);
  return c.outcome;
}

}  // namespace

Outcome OnDevice(keel_context*) {
  const keel_kv options[] = {{"results", "device"}};
  return RunTwice(options, 1);
}

Outcome PlacedOnDevices(keel_context*) {
  const keel_kv options[] = {{"results", "device"}, {"place", "h=hostile:1"}, {"place", "u=cpu"}};
  return RunTwice(options, 3);
}

}  // namespace keel::test
