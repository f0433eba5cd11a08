#include "kernel/device/outcome.h"

namespace keel {

RunOutcome::~RunOutcome() { options_.device->fault_slots().GiveBack(slot_, batch_.load()); }

absl::Status RunOutcome::Get() {
  {
    std::lock_guard lock(mutex_);
    if (settled_) return status_;
  }
  RETURN_IF_ERROR(options_.device->HostWait(KEEL_QUEUE_COMPUTE, batch_.load()));
  std::lock_guard lock(mutex_);
  if (settled_) return status_;
  status_ = Read();
  settled_ = true;
  options_.feeds.clear();
  options_.plan.reset();
  return status_;
}

// The feeds' runs are earlier on the same queue, so they are done.
absl::Status RunOutcome::GetOfFeeds() {
  for (const std::shared_ptr<RunOutcome>& feed : options_.feeds) RETURN_IF_ERROR(feed->Get());
  return absl::OkStatus();
}

// The slot is given back last, because the error may need memory.
absl::Status RunOutcome::Read() {
  RETURN_IF_ERROR(GetOfFeeds());
  if (slot_ == FaultSlots::kUnread) return absl::OkStatus();
  FaultSlots& slots = options_.device->fault_slots();
  Fault fault = slots.Read(slot_);
  absl::Status status = fault.word ? options_.explain(options_.plan.get(), fault) : absl::OkStatus();
  slots.GiveBack(std::exchange(slot_, FaultSlots::kUnread), batch_.load());
  return status;
}

}  // namespace keel
