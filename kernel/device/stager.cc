// stager.cc: copies between host and device in chunks, through rings of staging memory.
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "kernel/device/accelerator.h"

namespace keel {
namespace {

// Locks a ring; false if this run is cancelled meanwhile. (The holder may be waiting for its device.)
bool LockUnlessCancelled(Mutex& ring) {
  while (!ring.try_lock()) {
    if (CancellableWaits::Cancelled()) return false;
    usleep(50);
  }
  return true;
}
absl::Status Cancelled() {
  return Error(absl::StatusCode::kCancelled, "cancelled while waiting for another run");
}

}  // namespace

Stager::~Stager() {
  for (Ring* ring : {&up_, &down_})
    for (Slot& slot : ring->slots)
      if (slot.segment.bytes) device_.FreeSegment(slot.segment);
}

// A slot with room for `bytes`. A slot is reused from its start when the device is done with it and its bytes
// are copied to the host.
absl::StatusOr<Stager::Slot*> Stager::NextSlot(Ring& ring, uint64_t bytes, std::vector<Waiting>* waiting) {
  Slot* slot = &ring.slots[ring.at];
  if (!slot->unknown && slot->segment.bytes && slot->used + bytes <= kSlotBytes) return slot;
  ring.at = (ring.at + 1) % kSlots;
  slot = &ring.slots[ring.at];
  if (waiting) RETURN_IF_ERROR(Flush(waiting));
  if (slot->unknown) RETURN_IF_ERROR(device_.pool().Settle());
  if (!slot->unknown) RETURN_IF_ERROR(device_.HostWait(KEEL_QUEUE_TRANSFER, slot->ticket));
  slot->unknown = false;
  slot->used = 0;
  if (slot->segment.bytes) return slot;
  ASSIGN_OR_RETURN(slot->segment, device_.NewSegment(ring.kind, kSlotBytes));
  return slot;
}

absl::Status Stager::UploadChunk(const char* from, DeviceAddress to, uint64_t bytes, uint64_t* ticket) {
  ASSIGN_OR_RETURN(Slot * slot, NextSlot(up_, bytes, nullptr));
  std::memcpy(static_cast<char*>(slot->segment.host) + slot->used, from, bytes);
  slot->unknown = true;
  Encoder encoder(device_, KEEL_QUEUE_TRANSFER);
  RETURN_IF_ERROR(encoder.Copy(to, {&slot->segment, slot->used}, bytes));
  ASSIGN_OR_RETURN(*ticket, encoder.Submit());
  slot->unknown = false;
  slot->ticket = *ticket;
  slot->used += (bytes + 63) / 64 * 64;
  return absl::OkStatus();
}

absl::Status Stager::Upload(const void* from, DeviceAddress to, uint64_t bytes, uint64_t* ticket) {
  RETURN_IF_ERROR(device_.CheckProcess());
  if (!LockUnlessCancelled(up_.mutex)) return Cancelled();
  std::lock_guard lock(up_.mutex, std::adopt_lock);
  for (uint64_t at = 0; at < bytes; at += kSlotBytes)
    RETURN_IF_ERROR(UploadChunk(static_cast<const char*>(from) + at, {to.segment, to.offset + at},
                                std::min(kSlotBytes, bytes - at), ticket));
  return absl::OkStatus();
}

absl::Status Stager::DownloadChunk(const Part& part, uint64_t at, uint64_t bytes,
                                   std::vector<Waiting>* waiting) {
  ASSIGN_OR_RETURN(Slot * slot, NextSlot(down_, bytes, waiting));
  slot->unknown = true;
  Encoder encoder(device_, KEEL_QUEUE_TRANSFER);
  RETURN_IF_ERROR(encoder.Wait(KEEL_QUEUE_COMPUTE, part.after));
  RETURN_IF_ERROR(
      encoder.Copy({&slot->segment, slot->used}, {part.from.segment, part.from.offset + at}, bytes));
  ASSIGN_OR_RETURN(uint64_t ticket, encoder.Submit());
  slot->unknown = false;
  slot->ticket = ticket;
  waiting->push_back(
      {static_cast<char*>(slot->segment.host) + slot->used, static_cast<char*>(part.to) + at, bytes, ticket});
  slot->used += (bytes + 63) / 64 * 64;
  return absl::OkStatus();
}

absl::Status Stager::Flush(std::vector<Waiting>* waiting) {
  if (!waiting->empty()) RETURN_IF_ERROR(device_.HostWait(KEEL_QUEUE_TRANSFER, waiting->back().ticket));
  for (const Waiting& w : *waiting) std::memcpy(w.to, w.from, w.bytes);
  waiting->clear();
  return absl::OkStatus();
}

absl::Status Stager::Download(std::span<const Part> parts) {
  RETURN_IF_ERROR(device_.CheckProcess());
  if (!LockUnlessCancelled(down_.mutex)) return Cancelled();
  std::lock_guard lock(down_.mutex, std::adopt_lock);
  std::vector<Waiting> waiting;
  for (const Part& part : parts)
    for (uint64_t at = 0; at < part.bytes; at += kSlotBytes)
      RETURN_IF_ERROR(DownloadChunk(part, at, std::min(kSlotBytes, part.bytes - at), &waiting));
  return Flush(&waiting);
}

}  // namespace keel
