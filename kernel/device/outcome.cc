#include "kernel/device/outcome.h"

namespace keel {

RunOutcome::~RunOutcome() { options_.device->fault_slots().GiveBack(slot_, batch_); }

absl::Status RunOutcome::Get() {
  {
    std::lock_guard lock(mutex_);
    if (settled_) return status_;
  }
  RETURN_IF_ERROR(options_.device->HostWait(KEEL_QUEUE_COMPUTE, batch_));
  std::lock_guard lock(mutex_);
  if (settled_) return status_;
  status_ = Read();
  settled_ = true;
  options_.feeds.clear();
  options_.plan.reset();
  return status_;
}

// The feeds' runs are earlier on the same queue, so they are done.
absl::Status RunOutcome::Read() {
  for (const std::shared_ptr<RunOutcome>& feed : options_.feeds) RETURN_IF_ERROR(feed->Get());
  if (slot_ == FaultSlots::kUnread) return absl::OkStatus();
  FaultSlots& slots = options_.device->fault_slots();
  Fault fault = slots.Read(slot_);
  slots.GiveBack(std::exchange(slot_, FaultSlots::kUnread), batch_);
  return fault.word ? options_.explain(options_.plan.get(), fault) : absl::OkStatus();
}

}  // namespace keel
