// accelerator.h: an opened device with its own memory: its pool, its two queues, its staging memory. Not used
// for host-memory devices.
//
// Encoder adds work to a queue; Stager copies between host and device. Errors name the device function.
#pragma once

#include <unistd.h>

#include <atomic>
#include <memory>
#include <span>
#include <utility>

#include "absl/functional/function_ref.h"
#include "kernel/device/pool.h"
#include "kernel/plugin/host.h"

namespace keel {

struct DeviceAddress {  // a device address
  const keel_segment* segment = nullptr;
  uint64_t offset = 0;
  uint64_t address() const { return segment->address + offset; }
};
inline DeviceAddress AddressOf(const Allocation& piece) { return {piece.segment, piece.offset}; }

class Stager;

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

class Accelerator : public SegmentSource, public std::enable_shared_from_this<Accelerator> {
 public:
  // The accelerator of a device, created on first use. Host-memory devices have none.
  static absl::StatusOr<std::shared_ptr<Accelerator>> Of(Device& device);
  ~Accelerator() override;

  const std::string& name() const { return opened_->name; }
  keel_dev handle() const { return opened_->handle; }
  keel_queue queue(int kind) const { return queues_[kind].handle; }
  keel_devid id() const { return {info_.dl_type, info_.dl_id}; }
  uint64_t alignment() const { return info_.alignment; }
  Pool& pool() { return *pool_; }
  Stager& stager() { return *stager_; }

  // KEEL_UNAVAILABLE in a child forked after the device was opened: drivers do not support that.
  absl::Status CheckProcess() const;
  // Tickets that cover all work encoded so far; does not wait.
  absl::StatusOr<Tickets> Fence();
  // Whether this device may copy directly from `other`. The copy may still return Unimplemented.
  bool CanCopyFrom(const Accelerator& other) const;

  absl::Status HostWait(int queue, uint64_t ticket);
  absl::Status HostWait(const Tickets& tickets);

  absl::StatusOr<keel_segment> NewSegment(uint32_t kind, uint64_t bytes) override;
  void FreeSegment(const keel_segment& segment) override;
  Tickets Done() override;
  absl::Status WaitForAll() override;

 private:
  friend class Encoder;
  struct Queue {
    keel_queue handle = nullptr;
    Mutex mutex;                    // held while encoding
    std::atomic<uint64_t> done{0};  // the last ticket known to be done
  };

  explicit Accelerator(std::shared_ptr<const OpenedDevice> opened) : opened_(std::move(opened)) {}
  static absl::StatusOr<std::shared_ptr<Accelerator>> Make(std::shared_ptr<const OpenedDevice> opened);
  absl::Status ReadInfo();
  absl::Status OpenQueues();
  void MarkDone(int queue, uint64_t ticket);
  const keel_device& table() const { return opened_->plugin->device; }
  // The status of a device function's return code.
  absl::Status Finish(const HostCall& call, keel_rc rc, const char* function) const;

  std::shared_ptr<const OpenedDevice> opened_;
  const pid_t pid_ = getpid();
  keel_device_info info_{};
  Queue queues_[kQueues];
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<Stager> stager_;
};

// Encodes work on one queue and holds its lock. Lock order: compute before transfer.
class Encoder {
 public:
  Encoder(Accelerator& device, int queue);
  absl::Status Copy(DeviceAddress to, DeviceAddress from, uint64_t bytes);
  // From another device; Unimplemented: not between these two.
  absl::Status CopyFrom(DeviceAddress to, const Accelerator& other, DeviceAddress from, uint64_t bytes);
  absl::Status Fill(DeviceAddress at, uint64_t bytes, uint32_t value);
  // Subsequent work waits for a ticket of the other queue; free if that is known to be done.
  absl::Status Wait(int other, uint64_t ticket);
  absl::StatusOr<uint64_t> Submit();
  keel_queue handle() const { return device_.queue(queue_); }

 private:
  Accelerator& device_;
  int queue_;
  std::lock_guard<Mutex> lock_;
};

// Copies between host and device through two rings of staging memory. Thread-safe.
class Stager {
 public:
  explicit Stager(Accelerator& device) : device_(device) {}
  ~Stager();  // after the queues are closed

  // Reads the host bytes before it returns. ticket: of the transfer queue, done when the bytes are on the
  // device.
  absl::Status Upload(const void* from, DeviceAddress to, uint64_t bytes, uint64_t* ticket);
  struct Part {
    DeviceAddress from;
    void* to;
    uint64_t bytes;
    uint64_t after;  // ticket of the compute queue that writes the bytes
  };
  absl::Status Download(std::span<const Part> parts);  // returns when the bytes are in host memory

  static constexpr uint64_t kSlotBytes = 1 << 20;
  static constexpr size_t kSlots = 4;

 private:
  struct Slot {
    keel_segment segment{};
    uint64_t used = 0, ticket = 0;
    bool unknown = false;  // a failure left it in use for an unknown time
  };
  struct Ring {
    Mutex mutex;
    uint32_t kind;
    Slot slots[kSlots];
    size_t at = 0;
    explicit Ring(uint32_t k) : kind(k) {}
  };
  struct Waiting {  // bytes in a slot, to be copied to the host when the ticket is done
    const void* from;
    void* to;
    uint64_t bytes, ticket;
  };
  absl::StatusOr<Slot*> NextSlot(Ring& ring, uint64_t bytes, std::vector<Waiting>* waiting);
  absl::Status UploadChunk(const char* from, DeviceAddress to, uint64_t bytes, uint64_t* ticket);
  absl::Status DownloadChunk(const Part& part, uint64_t at, uint64_t bytes, std::vector<Waiting>* waiting);
  absl::Status Flush(std::vector<Waiting>* waiting);

  Accelerator& device_;
  Ring up_{KEEL_SEGMENT_STAGING}, down_{KEEL_SEGMENT_READBACK};
};

}  // namespace keel
