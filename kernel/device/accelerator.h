// accelerator.h: an opened device that has memory of its own: its pool, its two queues, its staging.
//
// How to read it: Encoder puts work on a queue; Stager brings bytes between host and device; errors of all
// of them name the device's function. Nothing here is used for host-memory devices.
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

struct Place {  // bytes on a device
  const keel_segment* segment = nullptr;
  uint64_t offset = 0;
  uint64_t address() const { return segment->address + offset; }
};
inline Place PlaceOf(const Piece& piece) { return {piece.segment, piece.offset}; }

class Stager;

// While it lives, this thread's waits for devices end with KEEL_CANCELLED soon after `stop` says so.
class WaitLimit {
 public:
  explicit WaitLimit(absl::FunctionRef<bool()> stop) : stop_(stop), before_(std::exchange(current_, this)) {}
  ~WaitLimit() { current_ = before_; }
  WaitLimit(const WaitLimit&) = delete;
  WaitLimit& operator=(const WaitLimit&) = delete;
  static bool Over() { return current_ && current_->stop_(); }

 private:
  static __thread WaitLimit* current_ __attribute__((tls_model("initial-exec")));
  absl::FunctionRef<bool()> stop_;
  WaitLimit* before_;
};

class Accelerator : public SegmentSource, public std::enable_shared_from_this<Accelerator> {
 public:
  // That of an opened device; made on first use. Host-memory devices have none.
  static absl::StatusOr<std::shared_ptr<Accelerator>> Of(Device& device);
  ~Accelerator() override;

  const std::string& name() const { return opened_->name; }
  keel_dev handle() const { return opened_->handle; }
  keel_queue queue(int kind) const { return queues_[kind].handle; }
  keel_devid id() const { return {info_.dl_type, info_.dl_id}; }
  uint64_t alignment() const { return info_.alignment; }
  Pool& pool() { return *pool_; }
  Stager& stager() { return *stager_; }

  // KEEL_UNAVAILABLE in a child that was forked after the device was opened: drivers do not survive that.
  absl::Status Here() const;
  // A ticket on each queue behind all that is encoded; nothing waits.
  absl::StatusOr<Tickets> Fence();
  // May bytes come here from that one without the host? The copy may still say no.
  bool Reaches(const Accelerator& other) const;

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
    Mutex mutex;                    // whoever encodes holds it
    std::atomic<uint64_t> done{0};  // the last ticket seen done
  };

  explicit Accelerator(std::shared_ptr<const OpenedDevice> opened) : opened_(std::move(opened)) {}
  static absl::StatusOr<std::shared_ptr<Accelerator>> Make(std::shared_ptr<const OpenedDevice> opened);
  absl::Status ReadInfo();
  absl::Status OpenQueues();
  void SawDone(int queue, uint64_t ticket);
  const keel_device& table() const { return opened_->plugin->device; }
  // The status of a call of one of the device's functions.
  absl::Status Finish(const HostCall& call, keel_rc rc, const char* function) const;

  std::shared_ptr<const OpenedDevice> opened_;
  const pid_t pid_ = getpid();
  keel_device_info info_{};
  Queue queues_[kQueues];
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<Stager> stager_;
};

// Encodes on one queue, whose lock it holds as long as it lives. Lock order: compute before transfer.
class Encoder {
 public:
  Encoder(Accelerator& device, int queue);
  absl::Status Copy(Place to, Place from, uint64_t bytes);
  // From another device; Unimplemented: not between these two.
  absl::Status CopyFrom(Place to, const Accelerator& other, Place from, uint64_t bytes);
  absl::Status Fill(Place at, uint64_t bytes, uint32_t value);
  // What follows waits for a ticket of the other queue; tickets that are known to be done cost nothing.
  absl::Status Wait(int other, uint64_t ticket);
  absl::StatusOr<uint64_t> Submit();
  keel_queue handle() const { return device_.queue(queue_); }

 private:
  Accelerator& device_;
  int queue_;
  std::lock_guard<Mutex> lock_;
};

// Copies between host and device through two rings of staging memory.
class Stager {
 public:
  explicit Stager(Accelerator& device) : device_(device) {}
  ~Stager();  // the queues are closed

  // Reads the host's bytes before it returns; `ticket` of the transfer queue: when they are on the device.
  absl::Status Upload(const void* from, Place to, uint64_t bytes, uint64_t* ticket);
  struct Part {
    Place from;
    void* to;
    uint64_t bytes;
    uint64_t after;  // ticket of the compute queue after which the bytes are there
  };
  absl::Status Download(std::span<const Part> parts);  // returns when the host has them

  static constexpr uint64_t kSlotBytes = 1 << 20;
  static constexpr size_t kSlots = 4;

 private:
  struct Slot {
    keel_segment segment{};
    uint64_t used = 0, ticket = 0;
    bool unknown = false;  // a failure left it so: something may still touch it
  };
  struct Ring {
    Mutex mutex;
    uint32_t kind;
    Slot slots[kSlots];
    size_t at = 0;
    explicit Ring(uint32_t k) : kind(k) {}
  };
  struct Waiting {  // bytes in a slot that go to the host when their ticket is done
    const void* from;
    void* to;
    uint64_t bytes, ticket;
  };
  absl::StatusOr<Slot*> Room(Ring& ring, uint64_t bytes, std::vector<Waiting>* waiting);
  absl::Status UploadChunk(const char* from, Place to, uint64_t bytes, uint64_t* ticket);
  absl::Status DownloadChunk(const Part& part, uint64_t at, uint64_t bytes, std::vector<Waiting>* waiting);
  absl::Status Flush(std::vector<Waiting>* waiting);

  Accelerator& device_;
  Ring up_{KEEL_SEGMENT_STAGING}, down_{KEEL_SEGMENT_READBACK};
};

}  // namespace keel
