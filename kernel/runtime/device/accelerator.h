// accelerator.h: an opened device with its own memory: its pools, its queues. Not used for host-memory
// devices.
//
// Encoder adds work to the open batch of a queue; Submit closes the batch. Batches of a queue are numbered
// from 1, so memory can be tied to work that is not submitted yet, and after a failure nothing is unknown:
// whatever was encoded is done when its batch is done. Stager copies between host and device; FaultSlots
// holds the fault bytes of runs. Errors name the device function.
#pragma once

#include <atomic>
#include <deque>
#include <list>
#include <memory>
#include <span>
#include <utility>

#include "absl/functional/function_ref.h"
#include "kernel/runtime/device/pool.h"
#include "kernel/runtime/plugin/host.h"

namespace keel {

struct DeviceAddress {  // a device address
  const keel_segment* segment = nullptr;
  uint64_t offset = 0;
  uint64_t address() const { return segment->address + offset; }
};
inline DeviceAddress AddressOf(const Allocation& piece) { return {piece.segment, piece.offset}; }

class Encoder;
class FaultSlots;
class Stager;

// Keeps the later of two batches.
inline void RaiseTo(std::atomic<uint64_t>& number, uint64_t batch) {
  for (uint64_t seen = number.load(); seen < batch && !number.compare_exchange_weak(seen, batch);) {
  }
}

struct Pending {  // something that is over with a batch
  uint64_t batch, what;
};

// An outcome of a run in flight (outcome.h), which refers to the outcomes of earlier runs until it is
// settled.
class Settleable {
 public:
  virtual ~Settleable() = default;
  virtual bool KnownDone() const = 0;
  virtual void Settle() = 0;  // requires KnownDone
};

// Memory of another owner, wrapped as a segment; released once the device no longer uses it.
struct Foreign {
  keel_segment segment;
  void (*release)(void* arg);
  void* arg;
  Batches last;
};

// During its lifetime, this thread's waits for devices end with KEEL_CANCELLED soon after `stop` returns
// true.
class CancellableWaits {
 public:
  explicit CancellableWaits(absl::FunctionRef<bool()> stop)
      : stop_(stop), before_(std::exchange(current_, this)) {}
  ~CancellableWaits() { current_ = before_; }
  CancellableWaits(const CancellableWaits&) = delete;
  CancellableWaits& operator=(const CancellableWaits&) = delete;
  static bool Cancelled() { return current_ && current_->stop_(); }

 private:
  static __thread CancellableWaits* current_ __attribute__((tls_model("initial-exec")));
  absl::FunctionRef<bool()> stop_;
  CancellableWaits* before_;
};

class Accelerator : public SegmentSource,
                    public StateMemory,
                    public std::enable_shared_from_this<Accelerator> {
 public:
  // The accelerator of a device, created on first use. Host-memory devices have none.
  static absl::StatusOr<std::shared_ptr<Accelerator>> Of(Device& device);
  ~Accelerator() override;

  const std::string& name() const { return opened_->name; }
  keel_dev handle() const { return opened_->handle; }
  keel_queue queue(int kind) const { return queues_[kind].handle; }
  keel_devid id() const { return {info_.dl_type, info_.dl_id}; }
  uint64_t alignment() const { return info_.alignment; }
  uint64_t max_segment() const { return info_.max_segment; }  // bytes; 0: no limit
  Pool& pool() { return *pool_; }
  Pool& params() { return *params_; }  // of launches; the host fills them
  Stager& stager() { return *stager_; }
  FaultSlots& fault_slots() { return *fault_slots_; }

  // KEEL_UNAVAILABLE in a child forked after the device was opened, which drivers do not support, and once
  // the device was given up.
  absl::Status CheckUsable() const;
  // Whether its work did not end: then its memory and launches stay until the process ends.
  bool given_up() const { return given_up_.load(std::memory_order_relaxed); }
  bool Records() const { return table().record_begin; }
  bool HasTimestamps() const { return table().timestamp; }
  void FreeRecording(keel_recording recording);  // the work of its replays is done
  // The queue of downloads: the transfer queue if the device has no other.
  int download_queue() const {
    return queues_[KEEL_QUEUE_DOWNLOAD].handle ? KEEL_QUEUE_DOWNLOAD : KEEL_QUEUE_TRANSFER;
  }
  // Whether this device may copy directly from `other`. The copy may still return Unimplemented.
  bool CanCopyFrom(const Accelerator& other) const;

  absl::Status Flush(int queue, uint64_t batch);  // submits the batch if it is open
  // Submits the batch if it is open. No lock is held during the wait.
  absl::Status HostWait(int queue, uint64_t batch);
  absl::Status HostWait(const Batches& batches);
  // Whether the batch is done; KnownDone: as far as is known without a call of the device.
  bool IsDone(int queue, uint64_t batch);
  bool KnownDone(int queue, uint64_t batch) const { return batch <= queues_[queue].done.load(); }
  // Whether the host has waited for all submitted batches, so that the queue is idle.
  bool IsDrained(int queue) const { return queues_[queue].waited.load() == queues_[queue].open.load() - 1; }
  // The batches that cover all work encoded so far, submitted or not.
  Batches Encoded() const;
  // For a wait that must not be cancelled, because memory or launches are freed after it. Gives the device up
  // if a run was stopped and a batch is not done some seconds later.
  void FinishWork(const Batches& batches);
  // Waits until few enough batches of the compute queue are in flight to begin another run. Settles, oldest
  // first, the outcomes of runs that are done: chains of outcomes stay as short as the work in flight.
  absl::Status LimitRunsInFlight();
  void AddUnsettled(std::weak_ptr<Settleable> outcome);  // of the run that begins

  // Memory that Keel did not allocate, as a segment. Unimplemented: not this memory.
  absl::StatusOr<keel_segment> WrapSegment(uint32_t kind, void* memory, uint64_t bytes);
  void UnwrapSegment(const keel_segment& segment);
  bool can_wrap() const { return table().segment_wrap && table().segment_unwrap; }
  void ReleaseWhenDone(std::list<Foreign>& memory);  // takes the entries; never allocates

  // Memory for the state of a launch (keel_host.memory_new). Runs wait for its uploads: the last batch.
  absl::StatusOr<keel_memory*> NewMemory(const void* data, uint64_t bytes, uint64_t* address) override;
  uint64_t state_uploads() const { return state_uploads_.load(std::memory_order_relaxed); }

  absl::StatusOr<keel_segment> NewSegment(uint32_t kind, uint64_t bytes) override;
  void FreeSegment(const keel_segment& segment) override;
  Batches Done() override;
  absl::Status WaitForAll() override;

 private:
  friend class Encoder;
  struct Queue {
    keel_queue handle = nullptr;
    Mutex mutex;                      // held while encoding
    std::atomic<uint64_t> open{1};    // the batch that is being encoded
    std::atomic<uint64_t> done{0};    // the last batch known to be done
    std::atomic<uint64_t> waited{0};  // the last batch that the host waited for
    size_t launches = 0;              // in the open batch; guarded by mutex
    uint64_t ticket = 0;              // the device's last; guarded by mutex
    Mutex tickets_mutex;
    std::deque<Pending> tickets;  // the device's, of the batches after `done`, without the open one
  };

  explicit Accelerator(std::shared_ptr<const OpenedDevice> opened);
  static absl::StatusOr<std::shared_ptr<Accelerator>> Make(std::shared_ptr<const OpenedDevice> opened);
  absl::Status ReadInfo();
  absl::Status OpenQueues();
  void FinishBatches(const Batches& batches, bool may_give_up);
  void FinishSubmitted();
  void AddTicket(int queue, uint64_t ticket);
  uint64_t TicketOf(int queue, uint64_t batch);  // 0: the batch is done
  void SettleDone();
  void ReleaseDone();
  // Marks the oldest batches up to the first that is not done.
  void MarkDone(int queue, absl::FunctionRef<bool(const Pending&)> is_done);
  const keel_device& table() const { return opened_->plugin->device; }
  // The status of a device function's return code.
  absl::Status Finish(const HostCall& call, keel_rc rc, const char* function) const;

  std::shared_ptr<const OpenedDevice> opened_;
  const uint32_t process_;  // the number of forks before it was opened
  keel_device_info info_{};
  Queue queues_[kQueues];
  std::unique_ptr<Pool> pool_, params_;
  std::unique_ptr<Stager> stager_;
  std::unique_ptr<FaultSlots> fault_slots_;
  std::atomic<bool> stopped_{false};  // whether the last wait was cancelled
  std::atomic<bool> given_up_{false};
  Mutex unsettled_mutex_;
  std::deque<std::weak_ptr<Settleable>> unsettled_;  // oldest first
  std::atomic<bool> any_unsettled_{false};
  std::atomic<uint64_t> state_uploads_{0};  // of the transfer queue
  Mutex foreign_mutex_;
  std::list<Foreign> foreign_;  // dropped, but perhaps still used
  std::atomic<bool> any_foreign_{false};
};

// Encodes work on one queue and holds its lock. A thread has at most one Encoder, and waits for nothing
// meanwhile.
class Encoder {
 public:
  Encoder(Accelerator& device, int queue);
  absl::Status Copy(DeviceAddress to, DeviceAddress from, uint64_t bytes);
  // From another device; Unimplemented: not between these two.
  absl::Status CopyFrom(DeviceAddress to, const Accelerator& other, DeviceAddress from, uint64_t bytes);
  absl::Status Fill(DeviceAddress at, uint64_t bytes, uint32_t value);
  // Launches encoded until EndRecording are recorded. Unimplemented: this work cannot be recorded.
  absl::Status BeginRecording(std::span<const uint64_t> table);
  absl::Status EndRecording(keel_recording* out);  // null: drops it
  absl::Status Replay(keel_recording recording, std::span<const uint64_t> table);
  absl::Status Timestamp(const keel_segment& to, uint64_t offset);  // requires HasTimestamps
  // Subsequent work waits for a submitted batch of the other queue; free if that is known to be done.
  absl::Status Wait(int other, uint64_t batch);
  // The batch that contains what is encoded now.
  uint64_t batch() const { return device_.queues_[queue_].open.load(std::memory_order_relaxed); }
  absl::StatusOr<uint64_t> Submit();  // the batch that it closed
  void CountLaunch() { device_.queues_[queue_].launches++; }
  size_t launches() const { return device_.queues_[queue_].launches; }  // in the open batch
  keel_queue handle() const { return device_.queue(queue_); }

 private:
  Accelerator& device_;
  int queue_;
  std::lock_guard<Mutex> lock_;
};

// Copies between host and device through staging memory. Thread-safe.
class Stager {
 public:
  explicit Stager(Accelerator& device);
  ~Stager();  // after the queues are closed

  struct UploadPart {
    const void* from;
    DeviceAddress to;
    uint64_t bytes;
  };
  // Reads the host bytes before it returns. *batch: of the transfer queue; unchanged if there are no bytes.
  absl::Status Upload(std::span<const UploadPart> parts, uint64_t* batch);
  struct DownloadPart {
    DeviceAddress from;
    void* to;
    uint64_t bytes;
  };
  // Waits for the batches `after`, which write the bytes, and for the copies. A wait for work of the compute
  // queue does not delay other copies.
  absl::Status Download(std::span<const DownloadPart> parts, const Batches& after);

 private:
  static constexpr uint64_t kUploadsInFlight = 64 << 20;  // bytes
  static constexpr size_t kMostUploads = 1024;            // in flight
  struct Chunk {  // of a download: bytes in staging memory after the batch
    Allocation staging;
    void* to = nullptr;
    uint64_t bytes = 0, batch = 0;
  };
  absl::StatusOr<bool> CopyDirectly(uint32_t kind, void* host, DeviceAddress at, uint64_t bytes);
  absl::Status UploadChunk(const char* from, DeviceAddress to, uint64_t bytes);
  absl::Status LimitUploads(uint64_t bytes);
  bool IsFull(uint64_t bytes) const;
  absl::StatusOr<uint64_t> Submit();
  struct Chunks;  // stager.cc
  absl::Status StartChunk(const DownloadPart& part, uint64_t at, Chunks* chunks);
  absl::Status FinishChunk(Chunks* chunks);

  Accelerator& device_;
  const uint64_t chunk_;  // bytes
  Pool up_, down_;
  Mutex mutex_;
  std::deque<Pending> uploads_;  // their bytes; guarded by mutex_
  uint64_t upload_bytes_ = 0;
};

// The fault bytes of a run, as keel_impl.h defines them.
struct Fault {
  uint32_t word = 0, bound = 0;
  int64_t index = 0;
};

// Memory for the fault bytes of the runs in flight: the device writes them, the host reads them without a
// copy if the device has shared memory. Otherwise they are in device memory, and each run copies its own.
// Thread-safe.
class FaultSlots {
 public:
  using Slot = uint32_t;
  static constexpr Slot kUnread = 0;  // for runs in which no launch can fail

  explicit FaultSlots(Accelerator& device) : device_(device) {}
  ~FaultSlots();  // after the queues are closed

  absl::StatusOr<Slot> Take();
  // The slot is used again once that batch of the compute queue is done.
  void GiveBack(Slot slot, uint64_t batch) noexcept;
  absl::StatusOr<uint64_t> AddressOf(Slot slot);
  absl::Status Clear(Encoder& encoder, Slot slot);  // before the launches of the run
  absl::Status Save(Encoder& encoder, Slot slot);   // after them
  Fault Read(Slot slot);                            // the batch of Save is done

 private:
  static constexpr uint64_t kStride = 64;
  static constexpr Slot kPerSegment = 256;
  struct Segments {
    keel_segment device{}, host{};  // shared memory: only `device`
    bool shared() const { return device.host != nullptr; }
  };
  absl::Status Allocate(Segments* made);
  absl::Status Grow();
  absl::StatusOr<Slot> TryTake();
  bool HasSegments();
  Segments& At(Slot slot) { return *segments_[slot / kPerSegment]; }
  static uint64_t Offset(Slot slot) { return slot % kPerSegment * kStride; }

  Accelerator& device_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Segments>> segments_;
  std::deque<Pending> free_;  // slots
};

}  // namespace keel
