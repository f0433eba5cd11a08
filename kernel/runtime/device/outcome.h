// outcome.h: the outcome of a run that may still be in flight: OK, or the error of the first launch that
// failed on its data. Shared by the arrays that the run computes; whoever looks at one of them first reads
// the fault bytes. A run inherits the failure of a run that computed its feeds: they share its record, so
// that a report of one is a report of both.
#pragma once

#include <memory>
#include <vector>

#include "kernel/language/values/pending.h"
#include "kernel/runtime/device/accelerator.h"

namespace keel {

class RunOutcome : public Settleable, public PendingRun {
 public:
  // Names the failed launch; `plan` is what the constructor got.
  using Explain = absl::Status (*)(const void* plan, const Fault& fault);
  struct Options {
    std::shared_ptr<Accelerator> device;
    std::vector<std::shared_ptr<RunOutcome>> feeds;
    std::shared_ptr<const void> plan;
    Explain explain = nullptr;
  };
  explicit RunOutcome(Options options) : options_(std::move(options)) {}
  ~RunOutcome() override;
  RunOutcome(const RunOutcome&) = delete;
  RunOutcome& operator=(const RunOutcome&) = delete;

  void SetSlot(FaultSlots::Slot slot) { slot_ = slot; }  // taken over; none: no launch can fail
  // The batch of the compute queue after which the fault bytes are final. Called before another thread has
  // access.
  void SetBatch(uint64_t batch) { batch_ = batch; }
  State state() override;
  absl::Status Wait() override;
  // An error of the wait itself, such as a cancellation, is returned but not remembered.
  absl::Status Get() override;
  // The error of a run that computed a feed, which the caller reports. Requires that a batch of this run is
  // done; used by this run only.
  absl::Status GetOfFeeds();
  bool KnownDone() const override { return options_.device->KnownDone(KEEL_QUEUE_COMPUTE, batch_.load()); }
  void Settle() override { SettleDone().IgnoreError(); }

 private:
  struct Failure {
    explicit Failure(absl::Status of) : status(std::move(of)) {}
    const absl::Status status;
    std::atomic<bool> reported{false};
  };
  absl::Status SettleDone();
  absl::Status Read();

  Options options_;
  FaultSlots::Slot slot_ = FaultSlots::kUnread;
  std::atomic<uint64_t> batch_{~uint64_t{0}};  // until SetBatch: not done
  Mutex mutex_;
  bool settled_ = false;
  std::shared_ptr<Failure> failure_;  // null: OK, or not settled; final once settled
};

}  // namespace keel
