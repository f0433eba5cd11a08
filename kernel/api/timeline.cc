// timeline.cc: the timeline of keel.h.
#include "kernel/base/timeline.h"

#include "kernel/api/handles.h"

using namespace keel;

keel_rc keel_timeline_begin(const char* path, int32_t runs, keel_error** err) {
  return Guard(err, "path", {path}, [&]() -> absl::Status {
    return Timeline::Begin(path, runs ? Timeline::kRuns : Timeline::kPlanning);
  });
}

keel_rc keel_timeline_end(keel_error** err) {
  return Guard(err, [] { return Timeline::End(); });
}

int64_t keel_timeline_now(void) { return Now(); }

void keel_timeline_span(const char* track, const char* name, const char* kind, int64_t begin_ns,
                        int64_t end_ns, const char* args) {
  if (!Timeline::On() || !track || !name || !kind) return;
  (void)Guard(nullptr, [&] {
    Timeline::Add(track, {name, kind, begin_ns, end_ns, args ? args : "{}"});
    return absl::OkStatus();
  });
}
