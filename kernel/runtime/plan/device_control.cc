// device_control.cc: what the frames of a run on a device ask of its queues (Machine). The host waits only
// for predicates and effects, and releases the compute queue meanwhile.
#include "kernel/runtime/plan/device_runner.h"

namespace keel {

absl::StatusOr<DeviceAddress> DeviceRunner::Locate(const void* pointer) const {
  auto address = reinterpret_cast<uint64_t>(pointer);
  auto holds = [&](const keel_segment* s) {
    return s && address >= s->address && address - s->address < s->bytes;
  };
  if (holds(memory_.segment)) return DeviceAddress{memory_.segment, address - memory_.segment->address};
  for (const auto* places : {&feed_places_, &result_places_})
    for (const DeviceAddress& place : *places)
      if (holds(place.segment)) return DeviceAddress{place.segment, address - place.segment->address};
  for (const keel_segment* segment : segments_)
    if (holds(segment)) return DeviceAddress{segment, address - segment->address};
  return Internal("device ", device_.name(), ": an address is outside all segments of its run");
}

// Submits all encoded work and releases the queue to other runs while the host executes `what`.
absl::Status DeviceRunner::Pause(absl::FunctionRef<absl::Status()> what) {
  RETURN_IF_ERROR(Submit());
  encoder_.reset();
  absl::Status status = what();
  encoder_.emplace(device_, KEEL_QUEUE_COMPUTE);
  return status;
}

// Also reads the fault bytes, because a predicate computed after a fault is undefined.
absl::Status DeviceRunner::Fetch(const void* address, void* to, uint64_t bytes) {
  std::vector<Stager::DownloadPart> parts;
  if (bytes) {
    ASSIGN_OR_RETURN(DeviceAddress place, Locate(address));
    parts.push_back({place, to, bytes});
  }
  return Pause([&]() -> absl::Status {
    RETURN_IF_ERROR(device_.stager().Download(parts, {{batch_}}));
    return ReadFault();
  });
}

// Work in flight may still use the destination, so the host waits for it first.
absl::Status DeviceRunner::Store(void* to, const void* from, uint64_t bytes) {
  ASSIGN_OR_RETURN(DeviceAddress place, Locate(to));
  uint64_t uploaded = 0;
  RETURN_IF_ERROR(Pause([&]() -> absl::Status {
    RETURN_IF_ERROR(device_.HostWait(KEEL_QUEUE_COMPUTE, batch_));
    Stager::UploadPart part{from, place, bytes};
    return device_.stager().Upload({&part, 1}, &uploaded);
  }));
  return encoder_->Wait(KEEL_QUEUE_TRANSFER, uploaded);
}

absl::Status DeviceRunner::Copy(void* to, const void* from, uint64_t bytes) {
  ASSIGN_OR_RETURN(DeviceAddress target, Locate(to));
  ASSIGN_OR_RETURN(DeviceAddress source, Locate(from));
  return encoder_->Copy(target, source, bytes);
}

absl::Status DeviceRunner::Fill(void* to, uint64_t bytes, uint32_t value) {
  ASSIGN_OR_RETURN(DeviceAddress place, Locate(to));
  return encoder_->Fill(place, bytes, value);
}

absl::Status DeviceRunner::Show(const Lowered& lowered, size_t step, const keel_call& call) {
  if (times_) return absl::OkStatus();  // ShowTimes does, after the run
  return Pause([&] { return ShowStep(lowered, step, call); });
}

}  // namespace keel
