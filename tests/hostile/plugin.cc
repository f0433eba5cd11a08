// plugin.cc: the hostile plugin's table, with two devices that compute like the reference, and the interface
// for tests.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "device.h"

namespace hostile {

std::atomic<Hook> spare{nullptr};

Control& control() {
  static Control all;
  return all;
}

bool Control::Fails(const char* function, keel_rc* code) {
  std::lock_guard lock(mutex);
  if (!fail_function.empty() && fail_function != function) return false;
  if (++calls != fail_at) return false;
  fired++;
  *code = fail_code;
  return true;
}

void Control::Violation(const std::string& what) {
  std::lock_guard lock(mutex);
  if (violations++ == 0) first_violation = what;
  std::fprintf(stderr, "hostile, seed %llu: rule broken: %s\n", static_cast<unsigned long long>(seed.load()),
               what.c_str());
}

namespace {

uint32_t Count(const keel_host* host) {
  if (!std::getenv("KEEL_HOSTILE_NONE")) return 2;
  host->fail(KEEL_UNAVAILABLE, "libhostile.so.1 is not installed");
  return 0;
}

keel_rc Info(const keel_host* host, uint32_t, keel_device_info* out) {
  HOSTILE_FAIL(host, "info");
  out->dl_type = 12;
  out->memory = control().memory;
  out->memory_free = control().memory;
  out->max_segment = control().max_segment;
  out->alignment = 256;
  std::snprintf(out->description, sizeof out->description, "lazy queues in random order, seed %llu",
                static_cast<unsigned long long>(control().seed.load()));
  return KEEL_OK;
}

keel_rc Open(const keel_host* host, uint32_t i, const keel_kv*, uint32_t, keel_dev* out) {
  HOSTILE_FAIL(host, "open");
  if (Impls().empty()) return host->fail(KEEL_UNAVAILABLE, "the reference plugin is not where it was built");
  auto* d = new keel_dev_s;
  d->host = host;
  d->index = i;
  d->random.seed(control().seed + 7919 * i);
  control().devices++;
  *out = d;
  return KEEL_OK;
}

void Close(keel_dev d) {
  if (!d->queues.empty() || !d->memory.empty()) control().Violation("close with live queues or segments");
  for (auto& [address, memory] : d->memory) std::free(memory.bytes);
  delete d;
  control().devices--;
}

constexpr keel_device kDevice = {sizeof(keel_device),
                                 0,
                                 Count,
                                 kSpared<Info>,
                                 kSpared<Open>,
                                 kSpared<Close>,
                                 kSpared<SegmentAlloc>,
                                 kSpared<SegmentFree>,
                                 kSpared<QueueOpen>,
                                 kSpared<QueueClose>,
                                 kSpared<Copy>,
                                 kSpared<Fill>,
                                 kSpared<Submit>,
                                 kSpared<QueueWait>,
                                 kSpared<HostWait>,
                                 kSpared<Query>,
                                 kSpared<CopyFrom>,
                                 nullptr,
                                 nullptr,
                                 kSpared<RecordBegin>,
                                 kSpared<RecordEnd>,
                                 kSpared<Replay>,
                                 kSpared<RecordingFree>,
                                 nullptr,
                                 kSpared<SegmentWrap>,
                                 kSpared<SegmentUnwrap>,
                                 nullptr};

const keel_plugin& description() {
  if (const char* seed = std::getenv("KEEL_HOSTILE_SEED")) control().seed = std::strtoull(seed, nullptr, 10);
  static const keel_plugin plugin = {KEEL_PLUGIN_HEADER,
                                     KEEL_HOSTILE_NAME,
                                     "0.1.0",
                                     "A device with memory of its own that does all that the contract allows",
                                     &kDevice,
                                     Impls().data(),
                                     static_cast<uint32_t>(Impls().size()),
                                     sizeof(keel_impl),
                                     nullptr,
                                     nullptr,
                                     0,
                                     0,
                                     nullptr,
                                     0,
                                     0};
  return plugin;
}

std::atomic<uint64_t>* Setting(const char* name) {
  Control& c = control();
  const std::pair<const char*, std::atomic<uint64_t>*> all[] = {{"seed", &c.seed},
                                                                {"memory", &c.memory},
                                                                {"max_segment", &c.max_segment},
                                                                {"lost", &c.lost},
                                                                {"delay", &c.delay},
                                                                {"peers", &c.peers},
                                                                {"shared", &c.shared},
                                                                {"peer_copies", &c.peer_copies},
                                                                {"drop_wait", &c.drop_wait},
                                                                {"early_free", &c.early_free},
                                                                {"late_read", &c.late_read},
                                                                {"segments", &c.segments},
                                                                {"wrapped", &c.wrapped},
                                                                {"downloads", &c.downloads},
                                                                {"wraps", &c.wraps},
                                                                {"bytes", &c.bytes},
                                                                {"queues", &c.queues},
                                                                {"devices", &c.devices},
                                                                {"states", &c.states},
                                                                {"recordings", &c.recordings},
                                                                {"replays", &c.replays},
                                                                {"params", &c.params},
                                                                {"records", &c.records},
                                                                {"calls", &c.calls},
                                                                {"fired", &c.fired},
                                                                {"violations", &c.violations},
                                                                {"commands", &c.commands},
                                                                {"orders", &c.millibits}};
  for (const auto& [key, value] : all)
    if (!std::strcmp(key, name)) return value;
  return nullptr;
}

}  // namespace
}  // namespace hostile

extern "C" {
KEEL_EXPORT void hostile_set(const char* name, uint64_t value) {
  if (auto* setting = hostile::Setting(name)) *setting = value;
  if (!std::strcmp(name, "seed")) hostile::control().millibits = 0;
}
KEEL_EXPORT uint64_t hostile_get(const char* name) {
  auto* setting = hostile::Setting(name);
  return setting ? setting->load() : ~uint64_t{0};
}
KEEL_EXPORT void hostile_spare(hostile::Hook hook) { hostile::spare = hook; }
// The n-th call (0: none) of a function ("": of any) fails with that code; resets the count.
KEEL_EXPORT void hostile_fail(const char* function, uint64_t n, int32_t code) {
  hostile::Control& c = hostile::control();
  std::lock_guard lock(c.mutex);
  c.fail_function = function;
  c.fail_at = n;
  c.fail_code = code;
  c.calls = c.fired = 0;
}
}

KEEL_PLUGIN(hostile::description())
