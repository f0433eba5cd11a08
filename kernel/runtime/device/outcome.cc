#include "kernel/runtime/device/outcome.h"

namespace keel {

RunOutcome::~RunOutcome() { options_.device->fault_slots().GiveBack(slot_, batch_.load()); }

PendingRun::State RunOutcome::state() {
  if (KnownDone()) Settle();
  std::lock_guard lock(mutex_);
  if (!settled_) return State::kPending;
  if (!failure_) return State::kGood;
  return failure_->reported ? State::kReported : State::kFailed;
}

// The device may know that the run is done before the host does.
absl::Status RunOutcome::Wait() {
  uint64_t batch = batch_.load();
  if (!options_.device->IsDone(KEEL_QUEUE_COMPUTE, batch))
    RETURN_IF_ERROR(options_.device->HostWait(KEEL_QUEUE_COMPUTE, batch));
  return SettleDone();
}

absl::Status RunOutcome::Get() {
  RETURN_IF_ERROR(options_.device->HostWait(KEEL_QUEUE_COMPUTE, batch_.load()));
  RETURN_IF_ERROR(SettleDone());
  if (!failure_) return absl::OkStatus();
  failure_->reported = true;
  return failure_->status;
}

// Requires that the run is done.
absl::Status RunOutcome::SettleDone() {
  std::lock_guard lock(mutex_);
  if (settled_) return absl::OkStatus();
  RETURN_IF_ERROR(Read());
  settled_ = true;
  options_.feeds.clear();
  options_.plan.reset();
  return absl::OkStatus();
}

// The feeds' runs are earlier on the same queue, so they are done.
absl::Status RunOutcome::GetOfFeeds() {
  for (const std::shared_ptr<RunOutcome>& feed : options_.feeds) RETURN_IF_ERROR(feed->Get());
  return absl::OkStatus();
}

// The slot is given back last, because the error may need memory.
absl::Status RunOutcome::Read() {
  for (const std::shared_ptr<RunOutcome>& feed : options_.feeds) {
    RETURN_IF_ERROR(feed->Wait());
    if (!failure_) failure_ = feed->failure_;
  }
  if (slot_ == FaultSlots::kUnread) return absl::OkStatus();
  FaultSlots& slots = options_.device->fault_slots();
  Fault fault = slots.Read(slot_);
  if (fault.word && !failure_)
    failure_ = std::make_shared<Failure>(options_.explain(options_.plan.get(), fault));
  slots.GiveBack(std::exchange(slot_, FaultSlots::kUnread), batch_.load());
  return absl::OkStatus();
}

}  // namespace keel
