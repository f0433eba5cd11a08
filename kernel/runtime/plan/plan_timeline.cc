// plan_timeline.cc: records runs on the timeline: each launch on the track of its device and lane, within the
// span of its run.
#include "kernel/runtime/plan/plan.h"

namespace keel {
namespace {

// `arg`: the requested device.
bool ShowLaunch(void* arg, const Lowered& lowered, const Event& event) {
  std::string track = lowered.device->name();
  if (lowered.device != arg) track += " (fallback)";
  if (event.when.lane) absl::StrAppend(&track, ", lane ", event.when.lane);
  std::string_view op = OpName(*event.step.op);
  Json args;
  const keel_impl& impl = event.step.impl->table;
  args.BeginObject().Key("op").String(op).Key("impl").String(impl.name ? impl.name : "").EndObject();
  Timeline::Add(track, {event.step.name, op, event.when.begin, event.when.end, args.Take()});
  return true;
}

}  // namespace

absl::Status Plan::RunShown(std::span<keel_array* const> in, std::span<ArrayRef> out, const Deadline* end) {
  const int64_t begin = Now();
  absl::Status status = RunWatched(in, out, ShowLaunch, lowered_->device, end);
  Timeline::Add(lowered_->device->name(), {lowered_->name, "run", begin, Now()});
  return status;
}

}  // namespace keel
