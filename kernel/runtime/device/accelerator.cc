// accelerator.cc: calls of the device functions; errors name the function.
#include "kernel/runtime/device/accelerator.h"

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <chrono>

namespace keel {
namespace {

constexpr int kGraceSeconds = 5;  // for each batch, once a run was stopped

// Incremented in a forked child, so that a check of the process needs no system call.
std::atomic<uint32_t> forks{0};
[[maybe_unused]] const int watched = pthread_atfork(nullptr, nullptr, [] { forks++; });

}  // namespace

Accelerator::Accelerator(std::shared_ptr<const OpenedDevice> opened)
    : opened_(std::move(opened)), process_(forks.load()) {}

absl::Status Accelerator::Finish(const HostCall& call, keel_rc rc, const char* function) const {
  if (rc == KEEL_OK) return absl::OkStatus();
  absl::Status status = call.Finish(rc, *opened_->plugin, absl::StrCat("called ", function));
  return Annotate(Error(status.code(), "device ", name(), ": ", function, ": ", status.message()),
                  kErrorPlugin, opened_->plugin->name);
}

absl::StatusOr<std::shared_ptr<Accelerator>> Accelerator::Of(Device& device) {
  return device.OpenAccelerator(&Accelerator::Make);
}

absl::StatusOr<std::shared_ptr<Accelerator>> Accelerator::Make(std::shared_ptr<const OpenedDevice> opened) {
  std::shared_ptr<Accelerator> a(new Accelerator(std::move(opened)));
  RETURN_IF_ERROR(a->ReadInfo());
  RETURN_IF_ERROR(a->OpenQueues());
  const char* mode = secure_getenv("KEEL_POOL");
  PoolOptions options{a->name(), a->alignment(), a->info_.max_segment,
                      !mode || std::string_view(mode) != "off"};
  a->pool_ = std::make_unique<Pool>(*a, options);
  options.kind = KEEL_SEGMENT_SHARED;
  a->params_ = std::make_unique<Pool>(*a, std::move(options));
  a->stager_ = std::make_unique<Stager>(*a);
  a->fault_slots_ = std::make_unique<FaultSlots>(*a);
  return a;
}

absl::Status Accelerator::ReadInfo() {
  constexpr uint64_t kMaxAlignment = 4096;
  info_.struct_size = sizeof info_;
  info_.dl_type = 12;  // DLPack: kDLExtDev
  if (table().info) {
    HostCall call;
    RETURN_IF_ERROR(Finish(call, table().info(&HostTable(), opened_->index, &info_), "info"));
  }
  if (!info_.alignment) info_.alignment = 64;
  if (std::popcount(info_.alignment) != 1 || info_.alignment > kMaxAlignment)
    return Invalid("device ", name(), ": info: alignment ", info_.alignment,
                   "; expected a power of two up to ", kMaxAlignment);
  info_.alignment = std::max<uint64_t>(info_.alignment, 64);
  return absl::OkStatus();
}

absl::Status Accelerator::OpenQueues() {
  for (uint32_t kind = 0; kind < kQueues; kind++) {
    HostCall call;
    keel_queue made = nullptr;
    keel_rc rc = table().queue_open(handle(), kind, &made);
    if (rc == KEEL_UNIMPLEMENTED && kind == KEEL_QUEUE_DOWNLOAD) continue;
    RETURN_IF_ERROR(Finish(call, rc, "queue_open"));
    if (!made) return Internal("device ", name(), ": queue_open returned no queue of kind ", kind);
    queues_[kind].handle = made;
  }
  return absl::OkStatus();
}

__thread CancellableWaits* CancellableWaits::current_ __attribute__((tls_model("initial-exec"))) = nullptr;

absl::Status Accelerator::CheckUsable() const {
  if (given_up())
    return Annotate(Error(absl::StatusCode::kUnavailable, "device ", name(), " was given up: its queues had ",
                          "not finished their work ", kGraceSeconds, " s after a run was stopped"),
                    kErrorHint, "start a new process");
  if (forks.load(std::memory_order_relaxed) == process_) [[likely]]
    return absl::OkStatus();
  return Annotate(Error(absl::StatusCode::kUnavailable, "device ", name(),
                        " was opened before fork(): a child process cannot use it"),
                  kErrorHint, "fork before the first use of the device, or start a new process");
}

// A parent's device, and one that was given up, is never closed.
Accelerator::~Accelerator() {
  if (CheckUsable().ok()) FinishSubmitted();
  if (!CheckUsable().ok()) new std::shared_ptr<const OpenedDevice>(opened_);
  for (Queue& queue : queues_)
    if (!CheckUsable().ok()) queue.handle = nullptr;
  for (Queue& queue : queues_)
    if (queue.handle) table().queue_close(std::exchange(queue.handle, nullptr));
  ReleaseDone();
  fault_slots_.reset();
  stager_.reset();
  params_.reset();
  pool_.reset();
}

constexpr const char* kKinds[] = {"DEVICE", "STAGING", "READBACK", "SHARED"};

absl::StatusOr<keel_segment> Accelerator::NewSegment(uint32_t kind, uint64_t bytes) {
  RETURN_IF_ERROR(CheckUsable());
  HostCall call;
  keel_segment segment{};
  segment.kind = kind;
  RETURN_IF_ERROR(Finish(call, table().segment_alloc(handle(), kind, bytes, &segment), "segment_alloc"));
  segment.kind = kind;
  bool on_device = kind == KEEL_SEGMENT_DEVICE || kind == KEEL_SEGMENT_SHARED;
  bool whole = segment.bytes >= bytes && (kind == KEEL_SEGMENT_DEVICE || segment.host) &&
               (!on_device || (segment.address && segment.address % alignment() == 0));
  if (whole) return segment;
  table().segment_free(handle(), &segment);
  return Internal("device ", name(), ": segment_alloc of ", bytes, " bytes of kind ", kind, " (",
                  kKinds[kind], ") returned ", segment.bytes, " bytes at device address ", segment.address,
                  ", host pointer ", segment.host ? "set" : "NULL", "; expected all bytes",
                  on_device ? absl::StrCat(", a device address that is a multiple of ", alignment()) : "",
                  kind == KEEL_SEGMENT_DEVICE ? "" : ", a host pointer");
}

void Accelerator::FreeSegment(const keel_segment& segment) {
  if (CheckUsable().ok()) table().segment_free(handle(), &segment);
}

void Accelerator::FreeRecording(keel_recording recording) {
  if (recording && CheckUsable().ok()) table().recording_free(handle(), recording);
}

absl::StatusOr<keel_segment> Accelerator::WrapSegment(uint32_t kind, void* memory, uint64_t bytes) {
  RETURN_IF_ERROR(CheckUsable());
  keel_segment segment{};
  HostCall call;
  RETURN_IF_ERROR(
      Finish(call, table().segment_wrap(handle(), kind, memory, bytes, &segment), "segment_wrap"));
  segment.kind = kind;
  if (segment.bytes >= bytes && (segment.address || kind != KEEL_SEGMENT_DEVICE)) return segment;
  UnwrapSegment(segment);
  return Internal("device ", name(), ": segment_wrap of ", bytes, " bytes returned ", segment.bytes,
                  " bytes at device address ", segment.address, "; expected all bytes");
}

void Accelerator::UnwrapSegment(const keel_segment& segment) {
  if (CheckUsable().ok()) table().segment_unwrap(handle(), &segment);
}

void Accelerator::ReleaseWhenDone(std::list<Foreign>& memory) {
  {
    std::lock_guard lock(foreign_mutex_);
    foreign_.splice(foreign_.end(), memory);
    any_foreign_ = true;
  }
  ReleaseDone();
}

// Waits for nothing. Without queues, no work is left.
void Accelerator::ReleaseDone() {
  if (!any_foreign_) return;
  std::list<Foreign> over;
  {
    std::lock_guard lock(foreign_mutex_);
    for (auto at = foreign_.begin(); at != foreign_.end();) {
      auto next = std::next(at);
      bool done = true;
      for (int q = 0; q < kQueues; q++) done = done && (!queues_[q].handle || IsDone(q, at->last.of[q]));
      if (done) over.splice(over.end(), foreign_, at);
      at = next;
    }
    any_foreign_ = !foreign_.empty();
  }
  for (const Foreign& memory : over) {
    UnwrapSegment(memory.segment);
    memory.release(memory.arg);
  }
}

namespace {

struct StatePiece : keel_memory {
  std::shared_ptr<Accelerator> device;
  Allocation piece;
  uint64_t batch = 0;  // of the transfer queue
  explicit StatePiece(std::shared_ptr<Accelerator> of) : device(std::move(of)) {}
  ~StatePiece() override { device->pool().Free(piece, {{0, batch}}); }
};

}  // namespace

absl::StatusOr<keel_memory*> Accelerator::NewMemory(const void* data, uint64_t bytes, uint64_t* address) {
  auto made = std::make_unique<StatePiece>(shared_from_this());
  ASSIGN_OR_RETURN(made->piece, pool_->Allocate(bytes, KEEL_QUEUE_TRANSFER));
  *address = made->piece.address();
  made->batch = Encoded().of[KEEL_QUEUE_TRANSFER];  // if the upload fails
  if (!data) return made.release();
  Stager::UploadPart part{data, AddressOf(made->piece), bytes};
  RETURN_IF_ERROR(stager_->Upload({&part, 1}, &made->batch));
  RaiseTo(state_uploads_, made->batch);
  return made.release();
}

Batches Accelerator::Encoded() const {
  Batches all;
  for (int q = 0; q < kQueues; q++)
    if (queues_[q].handle) all.of[q] = queues_[q].open.load();
  return all;
}

void Accelerator::AddTicket(int q, uint64_t ticket) {
  Queue& queue = queues_[q];
  std::lock_guard lock(queue.tickets_mutex);
  queue.tickets.push_back({queue.open.load(), ticket});
  queue.open.fetch_add(1);
}

uint64_t Accelerator::TicketOf(int q, uint64_t batch) {
  Queue& queue = queues_[q];
  std::lock_guard lock(queue.tickets_mutex);
  uint64_t done = queue.done.load();
  return batch <= done ? 0 : queue.tickets[batch - done - 1].what;
}

void Accelerator::MarkDone(int q, absl::FunctionRef<bool(const Pending&)> is_done) {
  Queue& queue = queues_[q];
  std::lock_guard lock(queue.tickets_mutex);
  for (; !queue.tickets.empty() && is_done(queue.tickets.front()); queue.done.fetch_add(1))
    queue.tickets.pop_front();
}

absl::Status Accelerator::Flush(int queue, uint64_t batch) {
  if (batch < queues_[queue].open.load()) return absl::OkStatus();
  Encoder encoder(*this, queue);
  return batch < encoder.batch() ? absl::OkStatus() : encoder.Submit().status();
}

// Waits in slices, so that a run can be cancelled in between.
absl::Status Accelerator::HostWait(int queue, uint64_t batch) {
  constexpr uint64_t kSlice = 10'000'000;  // nanoseconds
  if (KnownDone(queue, batch)) return absl::OkStatus();
  RETURN_IF_ERROR(CheckUsable());
  RETURN_IF_ERROR(Flush(queue, batch));
  uint64_t ticket = TicketOf(queue, batch);
  if (!ticket) return absl::OkStatus();
  HostCall call;
  keel_rc rc = KEEL_CANCELLED;
  do rc = table().host_wait(queues_[queue].handle, ticket, kSlice);
  while (rc == KEEL_CANCELLED && !CancellableWaits::Cancelled());
  if (rc == KEEL_OK) {
    MarkDone(queue, [&](const Pending& ticket) { return ticket.batch <= batch; });
    queues_[queue].waited = batch;
  }
  stopped_ = rc == KEEL_CANCELLED;
  if (rc == KEEL_CANCELLED)
    return Error(absl::StatusCode::kCancelled, "cancelled while waiting for device ", name());
  return Finish(call, rc, "host_wait");
}

absl::Status Accelerator::HostWait(const Batches& batches) {
  for (int q = 0; q < kQueues; q++) RETURN_IF_ERROR(HostWait(q, batches.of[q]));
  return absl::OkStatus();
}

// Batch by batch: each that is done is progress.
void Accelerator::FinishBatches(const Batches& batches, bool may_give_up) {
  for (int q = 0; q < kQueues; q++)
    for (uint64_t batch = queues_[q].done + 1; batch <= batches.of[q]; batch++) {
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kGraceSeconds);
      auto over = [&] { return may_give_up && std::chrono::steady_clock::now() >= end; };
      CancellableWaits whole(over);
      absl::Status status = HostWait(q, batch);
      if (absl::IsCancelled(status)) given_up_ = true;
      if (!status.ok()) return;
    }
}

void Accelerator::FinishWork(const Batches& batches) { FinishBatches(batches, stopped_); }

// Queues wait for each other, so none is closed before all are idle.
void Accelerator::FinishSubmitted() {
  Batches submitted;
  for (int q = 0; q < kQueues; q++)
    if (queues_[q].handle) submitted.of[q] = queues_[q].open - 1;
  FinishBatches(submitted, true);
}

absl::Status Accelerator::LimitRunsInFlight() {
  constexpr uint64_t kAhead = 64;  // batches
  uint64_t open = queues_[KEEL_QUEUE_COMPUTE].open.load();
  if (open > kAhead && !IsDone(KEEL_QUEUE_COMPUTE, open - kAhead))
    RETURN_IF_ERROR(HostWait(KEEL_QUEUE_COMPUTE, open - kAhead));
  SettleDone();
  ReleaseDone();
  return absl::OkStatus();
}

void Accelerator::AddUnsettled(std::weak_ptr<Settleable> outcome) {
  std::lock_guard lock(unsettled_mutex_);
  unsettled_.push_back(std::move(outcome));
  any_unsettled_ = true;
}

void Accelerator::SettleDone() {
  while (any_unsettled_) {
    std::shared_ptr<Settleable> oldest;
    {
      std::lock_guard lock(unsettled_mutex_);
      any_unsettled_ = !unsettled_.empty();
      if (!any_unsettled_) return;
      oldest = unsettled_.front().lock();
      if (oldest && !oldest->KnownDone()) return;
      unsettled_.pop_front();
    }
    if (oldest) oldest->Settle();
  }
}

// A failing query is ignored: the next call fails with the same cause.
bool Accelerator::IsDone(int queue, uint64_t batch) {
  if (KnownDone(queue, batch)) return true;
  uint64_t done = 0;
  HostCall call;
  if (table().query && queues_[queue].handle && CheckUsable().ok() &&
      table().query(queues_[queue].handle, &done) == KEEL_OK)
    MarkDone(queue, [&](const Pending& ticket) { return ticket.what <= done; });
  return KnownDone(queue, batch);
}

Batches Accelerator::Done() {
  Batches all;
  for (int q = 0; q < kQueues; q++) {
    IsDone(q, ~uint64_t{0});
    all.of[q] = queues_[q].done.load();
  }
  return all;
}

absl::Status Accelerator::WaitForAll() {
  RETURN_IF_ERROR(CheckUsable());
  Batches last;
  for (int q = 0; q < kQueues; q++) {
    if (!queues_[q].handle) continue;
    ASSIGN_OR_RETURN(last.of[q], Encoder(*this, q).Submit());
  }
  return HostWait(last);
}

bool Accelerator::CanCopyFrom(const Accelerator& other) const {
  return table().copy_from && opened_->plugin == other.opened_->plugin;
}

}  // namespace keel
