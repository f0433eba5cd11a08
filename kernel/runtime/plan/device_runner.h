// device_runner.h: one run of a plan on a device with its own memory: the memory, the queue, and a frame on
// it. runner.h is its counterpart for host memory.
//
// How to read it: Make allocates one block (arena, scratch) and builds the frame. Run uploads host feeds on
// the transfer queue and encodes the launches on the compute queue, behind one wait for the uploads. It
// returns when everything is encoded: results are arrays in device memory with a RunOutcome, which holds the
// fault bytes of the run. The host waits only for results in host memory, for runs with a time limit or an
// observer, and in control steps. The next run may use the memory of the block at once, because the queue is
// in order.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"

#include "kernel/base/slot_cache.h"
#include "kernel/runtime/device/move.h"
#include "kernel/runtime/plan/binding.h"
#include "kernel/runtime/plan/device_constants.h"
#include "kernel/runtime/plan/frame.h"

namespace keel {

class DeviceRunner : private Machine {
 public:
  static absl::StatusOr<std::unique_ptr<DeviceRunner>> Make(const Lowered& lowered, const Binding& binding,
                                                            const PlanOptions& options);
  ~DeviceRunner() override;
  // shared: of `lowered` and `binding`, for the outcome of the run.
  absl::Status Run(std::span<keel_array* const> feeds, std::span<ArrayRef> out, Observe observe, void* arg,
                   const Deadline* end, const std::shared_ptr<const Lowered>& shared);
  uint64_t batch() const { return batch_; }  // the last one of the compute queue that uses this runner

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
  void FindUses();
  void FindConstants(const Lowered& lowered);
  absl::Status EncodeRun(std::span<keel_array* const> feeds, std::span<ArrayRef> out, Observe observe,
                         const std::shared_ptr<const Lowered>& shared);
  absl::Status Finish(std::span<ArrayRef> out, Observe observe);
  absl::Status MakeOutcome(std::span<keel_array* const> feeds, const std::shared_ptr<const Lowered>& shared);
  absl::Status MakeResults(std::span<ArrayRef> out);
  absl::Status PlaceFeeds(std::span<keel_array* const> feeds);
  void Connect();
  absl::Status Encode();
  absl::Status EncodeObserved();
  absl::Status EncodeTimed();
  absl::Status ShowTimes(const int64_t* at);
  absl::Status Outcome(keel_rc of_frame);
  absl::Status BeginRun();
  absl::Status EndRun();
  absl::Status Submit();
  void RecordUse(std::span<keel_array* const> feeds, std::span<ArrayRef> out, bool failed);
  absl::Status ShowStep(const Lowered& lowered, size_t step, const keel_call& call);
  // device_replay.cc: recordings, and parameters of launches.
  absl::StatusOr<bool> Replay();  // false: encode the launches
  void FillTable();
  absl::Status Record(keel_recording* out);
  absl::Status RecordLaunches();
  uint16_t SlotOf(uint32_t value) const;
  absl::Status ReserveParams();
  absl::Status NewParams(uint64_t bytes);
  absl::Status TakeParams(uint64_t bytes, keel_call* call) override;
  // device_control.cc: the operations of Machine.
  absl::Status Fetch(const void* address, void* to, uint64_t bytes) override;
  absl::Status Store(void* to, const void* from, uint64_t bytes) override;
  absl::Status Copy(void* to, const void* from, uint64_t bytes) override;
  absl::Status Fill(void* to, uint64_t bytes, uint32_t value) override;
  absl::Status Launched() override;
  absl::Status Show(const Lowered& lowered, size_t step, const keel_call& call) override;
  absl::Status Pause(absl::FunctionRef<absl::Status()> what) override;
  absl::StatusOr<DeviceAddress> Locate(const void* address) const;
  absl::Status ReadFault();  // the error of a launch, or of a run that computed a feed; the batch is done

  const Lowered& lowered_;
  const Binding& binding_;
  const PlanOptions options_;
  Accelerator& device_;
  Allocation memory_;
  uint64_t scratch_at_ = 0;
  bool may_fail_ = false;                   // a launch may fail on its data
  uint64_t constants_ = 0;                  // batch of the transfer queue that uploads the constants
  std::vector<Allocation> staged_;          // by feed, of this run: destination of the upload of a host feed
  std::vector<DeviceAddress> feed_places_;  // by feed, of this run
  std::vector<DeviceAddress> result_places_;  // by fetch, of this run
  std::vector<bool> feed_used_;
  std::vector<uint64_t> table_;  // of a replay: the block, the fault bytes, feeds, results
  Allocation params_;            // for launches of this run and later ones
  uint64_t params_used_ = 0;     // bytes
  uint64_t uploaded_ = 0;        // batch of the transfer queue, of this run
  uint64_t failed_copies_ = 0;   // of the transfer queue: may still use the memory after a failed run
  uint64_t batch_ = 0;           // of the compute queue: contains the work of this run so far
  FaultSlots::Slot slot_ = FaultSlots::kUnread;
  uint64_t unread_fault_ = 0;                // the address of kUnread
  std::shared_ptr<RunOutcome> outcome_;      // of this run; null: OK
  std::shared_ptr<RunOutcome> own_outcome_;  // null: outcome_ is that of a feed
  RunState state_;
  std::unique_ptr<Frame> frame_;
  size_t launched_ = 0;                        // launches of this run, those of bodies included
  bool recording_ = false;                     // true while a recording is encoded
  const keel_segment* times_ = nullptr;        // receives a timestamp after each launch; null: none
  std::optional<Encoder> encoder_;             // of the current batch
  std::vector<const keel_segment*> segments_;  // of the constants
  StopFlag own_stop_{0};                       // of runs with a time limit
  const StopFlag* stop_ = &own_stop_;          // the flag that launches poll
  std::optional<Stopper::Limit> limit_;
};

// Idle runners of a binding, and the recording of its launches (device_replay.cc).
struct DevicePool {
  explicit DevicePool(std::shared_ptr<Accelerator> of) : device(std::move(of)) {}
  ~DevicePool();  // waits for runs in flight, which still use the launches
  void Use(uint64_t last);
  const std::shared_ptr<Accelerator> device;
  std::atomic<uint64_t> batch{0};  // the last one of the compute queue that contains work of this binding
  SlotCache<DeviceRunner, 8> idle;
  std::atomic<keel_recording> recording{nullptr};  // set once, by the run that holds the compute queue
  Allocation params;                               // of the recorded launches
  uint64_t param_bytes = 0;                        // of all launches of the plan; set by Bind
  bool records = false;                            // whether runs may record; set by Bind
  bool ran = false;                                // guarded, as `records` after Bind, by the compute queue
};

// device_replay.cc: whether later runs replay the launches.
bool MayRecord(const Lowered& lowered, const Binding& binding, const PlanOptions& options);

absl::Status RunOnDevice(const std::shared_ptr<const Lowered>& lowered, Binding& binding,
                         const PlanOptions& options, std::span<keel_array* const> feeds,
                         std::span<ArrayRef> out, Observe observe, void* arg, const Deadline* end);

// device_observe.cc: the error for the fault record that a launch of `step` stored.
absl::Status FaultStatus(const Fault& fault, const Step& step, const std::string& device);

}  // namespace keel
