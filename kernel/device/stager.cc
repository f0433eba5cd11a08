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
        return full ? device_.IsDone(KEEL_QUEUE_TRANSFER, batch) : device_.KnownDone(KEEL_QUEUE_TRANSFER, batch);
      };
      for (; !uploads_.empty() && over(uploads_.front().first); uploads_.pop_front())
        upload_bytes_ -= uploads_.front().second;
      if (!IsFull(bytes)) return absl::OkStatus();
      oldest = uploads_.front().first;
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
  uploads_.emplace_back(staging.batch, bytes);
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

absl::Status Stager::StartChunk(const DownloadPart& part, uint64_t at, std::deque<Chunk>* chunks) {
  Chunk& chunk = chunks->emplace_back();  // before the allocation, because it may throw
  chunk.to = static_cast<char*>(part.to) + at;
  chunk.bytes = std::min(chunk_, part.bytes - at);
  ASSIGN_OR_RETURN(chunk.staging, down_.Allocate(chunk.bytes, kHostFirst));
  Encoder encoder(device_, KEEL_QUEUE_TRANSFER);
  chunk.batch = encoder.batch();
  return encoder.Copy(AddressOf(chunk.staging), {part.from.segment, part.from.offset + at}, chunk.bytes);
}

absl::Status Stager::FinishChunk(std::deque<Chunk>* chunks) {
  const Chunk& chunk = chunks->front();
  RETURN_IF_ERROR(device_.HostWait(KEEL_QUEUE_TRANSFER, chunk.batch));
  std::memcpy(chunk.to, HostAddress(chunk.staging), chunk.bytes);
  down_.Free(chunk.staging, {});
  chunks->pop_front();
  return absl::OkStatus();
}

// Two whole chunks are in flight, so that the device copies one while the host copies the other.
absl::Status Stager::Download(std::span<const DownloadPart> parts, uint64_t after) {
  RETURN_IF_ERROR(device_.CheckProcess());
  RETURN_IF_ERROR(device_.Flush(KEEL_QUEUE_COMPUTE, after));
  if (!device_.IsDone(KEEL_QUEUE_COMPUTE, after))
    RETURN_IF_ERROR(device_.HostWait(KEEL_QUEUE_COMPUTE, after));
  struct Chunks : std::deque<Chunk> {  // frees the memory of a failed download
    Pool& pool;
    explicit Chunks(Pool& p) : pool(p) {}
    ~Chunks() {
      for (const Chunk& chunk : *this) pool.Free(chunk.staging, {{0, chunk.batch}});
    }
  } chunks(down_);
  uint64_t in_flight = 0;
  for (const DownloadPart& part : parts)
    for (uint64_t at = 0; at < part.bytes; at += chunk_) {
      while (in_flight > chunk_) {
        in_flight -= chunks.front().bytes;
        RETURN_IF_ERROR(FinishChunk(&chunks));
      }
      RETURN_IF_ERROR(StartChunk(part, at, &chunks));
      in_flight += chunks.back().bytes;
      if (chunks.back().bytes == chunk_) RETURN_IF_ERROR(Submit().status());
    }
  while (!chunks.empty()) RETURN_IF_ERROR(FinishChunk(&chunks));
  return absl::OkStatus();
}

}  // namespace keel
