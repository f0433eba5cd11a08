// stager.cc: copies between host and device in chunks, through pools of staging memory.
#include <algorithm>
#include <cstring>

#include "kernel/device/accelerator.h"

namespace keel {
namespace {

// Frees staging memory at the end of a scope, for use after the batch of the transfer queue.
struct Staged {
  Pool& pool;
  Allocation piece;
  uint64_t batch = 0;
  ~Staged() { pool.Free(piece, {{0, batch}}); }
};

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

absl::StatusOr<uint64_t> Stager::Submit() { return Encoder(device_, KEEL_QUEUE_TRANSFER).Submit(); }

absl::Status Stager::Upload(std::span<const UploadPart> parts, uint64_t* batch) {
  RETURN_IF_ERROR(device_.CheckProcess());
  bool pending = false;
  for (const UploadPart& part : parts)
    for (uint64_t at = 0; at < part.bytes; at += chunk_) {
      uint64_t bytes = std::min(chunk_, part.bytes - at);
      RETURN_IF_ERROR(UploadChunk(static_cast<const char*>(part.from) + at,
                                  {part.to.segment, part.to.offset + at}, bytes));
      pending = bytes < chunk_;
      if (pending) continue;  // the copy of a whole chunk begins while the host prepares the next
      ASSIGN_OR_RETURN(*batch, Submit());
    }
  if (!pending) return absl::OkStatus();
  ASSIGN_OR_RETURN(*batch, Submit());
  return absl::OkStatus();
}

// The chunks of a download that are in flight; frees the memory of a failed download.
struct Stager::Chunks {
  Pool& pool;
  std::vector<Chunk> all;
  size_t first = 0;  // the oldest in flight
  uint64_t bytes = 0;
  explicit Chunks(Pool& p) : pool(p) {}
  ~Chunks() {
    for (; first < all.size(); first++) pool.Free(all[first].staging, {{0, all[first].batch}});
  }
};

absl::Status Stager::StartChunk(const DownloadPart& part, uint64_t at, Chunks* chunks) {
  Chunk& chunk = chunks->all.emplace_back();  // before the allocation, because it may throw
  chunk.to = static_cast<char*>(part.to) + at;
  chunk.bytes = std::min(chunk_, part.bytes - at);
  chunks->bytes += chunk.bytes;
  ASSIGN_OR_RETURN(chunk.staging, down_.Allocate(chunk.bytes, kHostFirst));
  Encoder encoder(device_, KEEL_QUEUE_TRANSFER);
  chunk.batch = encoder.batch();
  RETURN_IF_ERROR(
      encoder.Copy(AddressOf(chunk.staging), {part.from.segment, part.from.offset + at}, chunk.bytes));
  return chunk.bytes == chunk_ ? encoder.Submit().status() : absl::OkStatus();
}

absl::Status Stager::FinishChunk(Chunks* chunks) {
  const Chunk& chunk = chunks->all[chunks->first];
  RETURN_IF_ERROR(device_.HostWait(KEEL_QUEUE_TRANSFER, chunk.batch));
  std::memcpy(chunk.to, HostAddress(chunk.staging), chunk.bytes);
  down_.Free(chunk.staging, {});
  chunks->bytes -= chunk.bytes;
  chunks->first++;
  return absl::OkStatus();
}

// Two whole chunks are in flight, so that the device copies one while the host copies the other.
absl::Status Stager::Download(std::span<const DownloadPart> parts, uint64_t after) {
  RETURN_IF_ERROR(device_.CheckProcess());
  RETURN_IF_ERROR(device_.Flush(KEEL_QUEUE_COMPUTE, after));
  if (!device_.IsDone(KEEL_QUEUE_COMPUTE, after))
    RETURN_IF_ERROR(device_.HostWait(KEEL_QUEUE_COMPUTE, after));
  Chunks chunks(down_);
  for (const DownloadPart& part : parts)
    for (uint64_t at = 0; at < part.bytes; at += chunk_) {
      while (chunks.bytes > chunk_) RETURN_IF_ERROR(FinishChunk(&chunks));
      RETURN_IF_ERROR(StartChunk(part, at, &chunks));
    }
  while (chunks.first < chunks.all.size()) RETURN_IF_ERROR(FinishChunk(&chunks));
  return absl::OkStatus();
}

}  // namespace keel
