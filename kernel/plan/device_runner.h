// device_runner.h: one run of a plan on a device with its own memory; runner.h is its counterpart for host
// memory.
//
// How to read it: Make allocates one block (arena, scratch, results, fault word) and builds the calls. Run
// uploads host feeds on the transfer queue, encodes the launches on the compute queue, each waiting only for
// its own feeds, and downloads each result as soon as it is complete. It returns after all work is done and
// the fault word is read. Launches are encoded in batches, so that a stopped run leaves little work in
// flight.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"

#include "kernel/base/mutex.h"
#include "kernel/device/move.h"
#include "kernel/plan/binding.h"
#include "kernel/plan/control.h"
#include "kernel/plan/runner.h"

namespace keel {

// The constants of a plan on its device: uploaded once, shared by all bindings and runs.
struct DeviceConstants {
  std::shared_ptr<Accelerator> device;
  std::vector<Allocation> pieces;  // by constant; empty if no launch and no fetch reads it
  bool settled = false;            // all uploads are complete
  ~DeviceConstants();
};
absl::Status UploadConstants(Lowered* lowered);

// The fault record that a launch stores at env->fault, as keel_plugin.h defines it.
struct Fault {
  uint32_t word = 0, bound = 0;
  int64_t index = 0;
};

// Adapts the number of launches per batch, so that a batch takes the device a few milliseconds.
class Pace {
 public:
  size_t batch() const { return batch_; }
  void Begin() { start_ = Stopper::Clock::now(); }
  void Next() {
    Stopper::Clock::duration took = Stopper::Clock::now() - start_;
    if (took < kShort) batch_ = std::min(batch_ * 2, kLargest);
    if (took > kLong) batch_ = std::max<size_t>(batch_ / 2, 1);
    start_ += took;
  }

 private:
  static constexpr std::chrono::milliseconds kShort{2}, kLong{10};
  static constexpr size_t kLargest = 1024;
  size_t batch_ = 2;  // initially, before any batch is timed
  Stopper::Clock::time_point start_;
};

class DeviceRunner : private Machine {
 public:
  static absl::StatusOr<std::unique_ptr<DeviceRunner>> Make(const Lowered& lowered, const Binding& binding,
                                                            const PlanOptions& options);
  ~DeviceRunner() override;
  absl::Status Run(std::span<keel_array* const> feeds, std::span<ArrayRef> out, Observe observe, void* arg,
                   const Deadline* end);
  bool broken() const { return broken_; }

 private:
  // Scope that holds the compute queue for this run, except while the host waits in Pause.
  struct Encoding {
    DeviceRunner& runner;
    explicit Encoding(DeviceRunner& r) : runner(r) { r.encoder_.emplace(r.device_, KEEL_QUEUE_COMPUTE); }
    ~Encoding() { runner.encoder_.reset(); }
    Encoding(const Encoding&) = delete;
    Encoding& operator=(const Encoding&) = delete;
  };
  DeviceRunner(const Lowered& lowered, const Binding& binding, const PlanOptions& options)
      : lowered_(lowered), binding_(binding), options_(options), device_(*lowered.accelerator) {}
  absl::Status TakeMemory();
  void BuildViews();
  void BuildCalls();
  void FindUses();
  // After a failure: waits for the device; if that fails, marks the arrays and this runner as unsettled.
  void Settle(std::span<keel_array* const> feeds, std::span<ArrayRef> out);
  // After a stop: returns without waiting for work in flight and fences all memory that it uses.
  absl::Status Abandon(std::span<keel_array* const> feeds, std::span<ArrayRef> out);
  absl::Status RunSteps(std::span<keel_array* const> feeds, std::span<ArrayRef> out, Observe observe);
  absl::Status MakeResults(std::span<ArrayRef> out);
  absl::Status PlaceFeeds(std::span<keel_array* const> feeds);
  void Connect();
  absl::Status Encode(std::span<ArrayRef> out);
  absl::Status EncodeBatch(size_t from, size_t to, std::span<ArrayRef> out);
  absl::Status EncodeObserved(std::span<ArrayRef> out);
  absl::Status EncodeStep(Encoder& encoder, size_t step);
  absl::Status EncodeResults(Encoder& encoder, size_t after_step, std::span<ArrayRef> out);
  absl::Status EncodeLast(Encoder& encoder, std::span<ArrayRef> out);
  absl::Status CheckStop(size_t after_step) const;
  absl::Status ShowStep(const Lowered& lowered, size_t step, const keel_call& call);
  // device_control.cc: the operations of Machine, for bodies of control steps.
  absl::Status Fetch(const void* address, void* to, uint64_t bytes) override;
  absl::Status Store(void* to, const void* from, uint64_t bytes) override;
  absl::Status Copy(void* to, const void* from, uint64_t bytes) override;
  absl::Status Zero(void* to, uint64_t bytes) override;
  absl::Status Launched() override;
  absl::Status Show(const Frame& frame, size_t step) override;
  absl::Status Pause(absl::FunctionRef<absl::Status()> what);
  absl::Status EncodeControl(size_t step);
  void FindSegments(const Lowered& lowered);
  absl::StatusOr<DeviceAddress> Locate(const void* address) const;
  absl::Status Collect(std::span<ArrayRef> out);
  absl::Status FaultError(const Fault& fault) const;
  DeviceAddress PlaceOfValue(uint32_t value) const;
  DeviceAddress ResultPlace(size_t i) const;

  const Lowered& lowered_;
  const Binding& binding_;
  const PlanOptions options_;
  Accelerator& device_;
  bool broken_ = false;  // a failed run may still touch the memory
  Allocation memory_;
  uint64_t scratch_at_ = 0, fault_at_ = 0;
  std::vector<uint64_t> result_at_;         // by fetch: offset in memory_ of a result that is downloaded
  std::vector<Allocation> staged_;          // by feed: destination of the upload of a host feed
  std::vector<DeviceAddress> feed_places_;  // by feed, of this run
  std::vector<uint64_t> feed_ticket_;
  std::vector<DeviceAddress> result_places_;  // by fetch, of this run
  std::vector<keel_tensor> views_;            // by value
  std::vector<keel_tensor*> operands_;
  std::vector<keel_call> calls_;
  std::vector<uint32_t> outside_;  // values whose address changes with each run
  std::vector<std::vector<uint32_t>>
      feeds_at_;  // by step: feeds first used there; last entry: first used by fetches
  std::vector<std::vector<uint32_t>> results_after_;  // by step + 1: fetches complete after that step
  std::vector<uint64_t> result_ticket_;               // by fetch, of the compute queue
  std::vector<bool> feed_used_;
  uint64_t last_ticket_ = 0;  // of the compute queue, of this run
  Fault fault_;               // last downloaded copy
  size_t at_ = 0;             // the step encoded last
  Pace pace_;
  std::optional<Tickets> abandoned_;  // fence after the work that a stopped run left in flight
  RunState state_;
  std::vector<std::unique_ptr<Control>> controls_;  // by step; null: the step has no bodies
  std::optional<Encoder> encoder_;                  // of the current batch
  std::vector<const keel_segment*> segments_;       // of memory and constants
  size_t launched_ = 0;                             // launches in bodies since the host last waited
  StopFlag own_stop_{0};                            // of runs with a time limit
  const StopFlag* stop_ = &own_stop_;               // the flag that launches poll
  std::optional<Stopper::Limit> limit_;
};

// Idle runners of a binding.
struct DevicePool {
  static constexpr size_t kIdle = 8;
  ~DevicePool();  // waits for stopped runs, which may still use the launches
  Mutex mutex;
  std::shared_ptr<Accelerator> device;
  Tickets abandoned;  // fence after all stopped runs
  std::vector<std::unique_ptr<DeviceRunner>> idle;
};

absl::Status RunOnDevice(const Lowered& lowered, Binding& binding, const PlanOptions& options,
                         std::span<keel_array* const> feeds, std::span<ArrayRef> out, Observe observe,
                         void* arg, const Deadline* end);

// device_observe.cc: runs a prepared launch on operands in host memory, for constant folding.
absl::Status RunOnceOnDevice(const Lowered& lowered, const Step& step, const Launch& launch,
                             std::span<const keel_tensor* const> in, std::span<keel_tensor* const> out,
                             uint32_t threads);
// The error for the fault record that a launch of `step` stored.
absl::Status FaultStatus(const Fault& fault, const Step& step, const std::string& device);

}  // namespace keel
