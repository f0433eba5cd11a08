// stager.cc: copies between host and device in chunks, through pools of staging memory.
#include <algorithm>
#include <cstring>

#include "kernel/runtime/device/accelerator.h"

namespace keel {
namespace {

// Frees staging memory at the end of a scope, for use after the batch of the transfer queue.
struct Staged {
  Pool& pool;
  Allocation piece;
  uint64_t batch = 0;
  ~Staged() { pool.Free(piece, {{0, batch}}); }
};

Batches On(int queue, uint64_t batch) {
  Batches one;
  one.of[queue] = batch;
  return one;
}

char* HostAddress(const Allocation& piece) { return static_cast<char*>(piece.segment->host) + piece.offset; }

PoolOptions Staging(const Accelerator& device, uint32_t kind) {
  return {device.name(), device.alignment(), device.max_segment(), true, kind};
}

uint64_t ChunkOf(const Accelerator& device) {
  constexpr uint64_t kChunk = 16 << 20, kPage = 4096;
  return device.max_segment() ? std::clamp(device.max_segment() / kPage * kPage, kPage, kChunk) : kChunk;
}

}  // namespace

Stager::Stager(Accelerator& device)
    : device_(device),
      chunk_(ChunkOf(device)),
      up_(device, Staging(device, KEEL_SEGMENT_STAGING)),
      down_(device, Staging(device, KEEL_SEGMENT_READBACK)) {}

Stager::~Stager() = default;

bool Stager::IsFull(uint64_t bytes) const {
  return !uploads_.empty() && (upload_bytes_ + bytes > kUploadsInFlight || uploads_.size() >= kMostUploads);
}

// Waits for the oldest uploads while too many are in flight. Queries the device only if necessary.
absl::Status Stager::LimitUploads(uint64_t bytes) {
  for (;;) {
    uint64_t oldest = 0;
    {
      std::lock_guard lock(mutex_);
      const bool full = IsFull(bytes);
      auto over = [&](uint64_t batch) {
        return full ? device_.IsDone(KEEL_QUEUE_TRANSFER, batch)
                    : device_.KnownDone(KEEL_QUEUE_TRANSFER, batch);
      };
      for (; !uploads_.empty() && over(uploads_.front().batch); uploads_.pop_front())
        upload_bytes_ -= uploads_.front().what;
      if (!IsFull(bytes)) return absl::OkStatus();
      oldest = uploads_.front().batch;
    }
    RETURN_IF_ERROR(device_.HostWait(KEEL_QUEUE_TRANSFER, oldest));
  }
}

absl::Status Stager::UploadChunk(const char* from, DeviceAddress to, uint64_t bytes) {
  RETURN_IF_ERROR(LimitUploads(bytes));
  Staged staging{up_, {}};
  ASSIGN_OR_RETURN(staging.piece, up_.Allocate(bytes, kHostFirst));
  std::memcpy(HostAddress(staging.piece), from, bytes);
  Encoder encoder(device_, KEEL_QUEUE_TRANSFER);
  staging.batch = encoder.batch();
  RETURN_IF_ERROR(encoder.Copy(to, AddressOf(staging.piece), bytes));
  std::lock_guard lock(mutex_);
  uploads_.push_back({staging.batch, bytes});
  upload_bytes_ += bytes;
  return absl::OkStatus();
}

// Copies to or from memory of the program without staging memory, and waits. False: too small to be worth it,
// or the device cannot.
absl::StatusOr<bool> Stager::CopyDirectly(uint32_t kind, void* host, DeviceAddress at, uint64_t bytes) {
  constexpr uint64_t kDirect = 16 << 20;
  if (bytes < kDirect || !device_.can_wrap()) return false;
  absl::StatusOr<keel_segment> wrapped = device_.WrapSegment(kind, host, bytes);
  if (absl::IsUnimplemented(wrapped.status())) return false;
  RETURN_IF_ERROR(wrapped.status());
  struct Unwrap {  // also when memory runs out
    Accelerator& device;
    const keel_segment& segment;
    bool done = false;
    ~Unwrap() {
      if (!done) device.FinishWork(device.Encoded());
      device.UnwrapSegment(segment);
    }
  } unwrap{device_, *wrapped};
  const bool up = kind == KEEL_SEGMENT_STAGING;
  const int queue = up ? KEEL_QUEUE_TRANSFER : device_.download_queue();
  const DeviceAddress there{&*wrapped, 0};
  uint64_t batch = 0;
  {
    Encoder encoder(device_, queue);
    RETURN_IF_ERROR(encoder.Copy(up ? at : there, up ? there : at, bytes));
    ASSIGN_OR_RETURN(batch, encoder.Submit());
  }
  RETURN_IF_ERROR(device_.HostWait(queue, batch));
  unwrap.done = true;
  return true;
}

absl::StatusOr<uint64_t> Stager::Submit() { return Encoder(device_, KEEL_QUEUE_TRANSFER).Submit(); }

absl::Status Stager::Upload(std::span<const UploadPart> parts, uint64_t* batch) {
  RETURN_IF_ERROR(device_.CheckUsable());
  bool pending = false;
  for (const UploadPart& part : parts) {
    ASSIGN_OR_RETURN(bool copied,
                     CopyDirectly(KEEL_SEGMENT_STAGING, const_cast<void*>(part.from), part.to, part.bytes));
    for (uint64_t at = 0; !copied && at < part.bytes; at += chunk_) {
      uint64_t bytes = std::min(chunk_, part.bytes - at);
      RETURN_IF_ERROR(UploadChunk(static_cast<const char*>(part.from) + at,
                                  {part.to.segment, part.to.offset + at}, bytes));
      pending = bytes < chunk_;
      if (pending) continue;  // the copy of a whole chunk begins while the host prepares the next
      ASSIGN_OR_RETURN(*batch, Submit());
    }
  }
  if (!pending) return absl::OkStatus();
  ASSIGN_OR_RETURN(*batch, Submit());
  return absl::OkStatus();
}

// The chunks of a download that are in flight; frees the memory of a failed download.
struct Stager::Chunks {
  Pool& pool;
  const int queue;
  std::vector<Chunk> all;
  size_t first = 0;  // the oldest in flight
  uint64_t bytes = 0;
  Chunks(Pool& p, int q) : pool(p), queue(q) {}
  ~Chunks() {
    for (; first < all.size(); first++) pool.Free(all[first].staging, On(queue, all[first].batch));
  }
};

absl::Status Stager::StartChunk(const DownloadPart& part, uint64_t at, Chunks* chunks) {
  Chunk& chunk = chunks->all.emplace_back();  // before the allocation, because it may throw
  chunk.to = static_cast<char*>(part.to) + at;
  chunk.bytes = std::min(chunk_, part.bytes - at);
  chunks->bytes += chunk.bytes;
  ASSIGN_OR_RETURN(chunk.staging, down_.Allocate(chunk.bytes, kHostFirst));
  Encoder encoder(device_, chunks->queue);
  chunk.batch = encoder.batch();
  RETURN_IF_ERROR(
      encoder.Copy(AddressOf(chunk.staging), {part.from.segment, part.from.offset + at}, chunk.bytes));
  return chunk.bytes == chunk_ ? encoder.Submit().status() : absl::OkStatus();
}

absl::Status Stager::FinishChunk(Chunks* chunks) {
  const Chunk& chunk = chunks->all[chunks->first];
  RETURN_IF_ERROR(device_.HostWait(chunks->queue, chunk.batch));
  std::memcpy(chunk.to, HostAddress(chunk.staging), chunk.bytes);
  down_.Free(chunk.staging, {});
  chunks->bytes -= chunk.bytes;
  chunks->first++;
  return absl::OkStatus();
}

// Two whole chunks are in flight, so that the device copies one while the host copies the other.
absl::Status Stager::Download(std::span<const DownloadPart> parts, const Batches& after) {
  const uint64_t computed = after.of[KEEL_QUEUE_COMPUTE], uploaded = after.of[KEEL_QUEUE_TRANSFER];
  RETURN_IF_ERROR(device_.CheckUsable());
  RETURN_IF_ERROR(device_.Flush(KEEL_QUEUE_COMPUTE, computed));
  if (!device_.IsDone(KEEL_QUEUE_COMPUTE, computed))
    RETURN_IF_ERROR(device_.HostWait(KEEL_QUEUE_COMPUTE, computed));
  Chunks chunks(down_, device_.download_queue());
  if (chunks.queue != KEEL_QUEUE_TRANSFER && !device_.KnownDone(KEEL_QUEUE_TRANSFER, uploaded)) {
    RETURN_IF_ERROR(device_.Flush(KEEL_QUEUE_TRANSFER, uploaded));
    RETURN_IF_ERROR(Encoder(device_, chunks.queue).Wait(KEEL_QUEUE_TRANSFER, uploaded));
  }
  for (const DownloadPart& part : parts) {
    ASSIGN_OR_RETURN(bool copied, CopyDirectly(KEEL_SEGMENT_READBACK, part.to, part.from, part.bytes));
    for (uint64_t at = 0; !copied && at < part.bytes; at += chunk_) {
      while (chunks.bytes > chunk_) RETURN_IF_ERROR(FinishChunk(&chunks));
      RETURN_IF_ERROR(StartChunk(part, at, &chunks));
    }
  }
  while (chunks.first < chunks.all.size()) RETURN_IF_ERROR(FinishChunk(&chunks));
  return absl::OkStatus();
}

}  // namespace keel
