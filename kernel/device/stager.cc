// stager.cc: bytes between host and device, in chunks through rings of staging memory.
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "kernel/device/accelerator.h"

namespace keel {
namespace {

// Another run may hold a ring for as long as it waits for its device; this one may be stopped meanwhile.
bool Took(Mutex& ring) {
  while (!ring.try_lock()) {
    if (WaitLimit::Over()) return false;
    usleep(50);
  }
  return true;
}
absl::Status StoppedBefore() {
  return Error(absl::StatusCode::kCancelled, "stopped while it waited for another run");
}

}  // namespace

Stager::~Stager() {
  for (Ring* ring : {&up_, &down_})
    for (Slot& slot : ring->slots)
      if (slot.segment.bytes) device_.FreeSegment(slot.segment);
}

// The slot that has room for `bytes` behind what it holds. A slot is begun anew when the device is done
// with it, and the host has taken what waits in it.
absl::StatusOr<Stager::Slot*> Stager::Room(Ring& ring, uint64_t bytes, std::vector<Waiting>* waiting) {
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

absl::Status Stager::UploadChunk(const char* from, Place to, uint64_t bytes, uint64_t* ticket) {
  ASSIGN_OR_RETURN(Slot * slot, Room(up_, bytes, nullptr));
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

absl::Status Stager::Upload(const void* from, Place to, uint64_t bytes, uint64_t* ticket) {
  RETURN_IF_ERROR(device_.Here());
  if (!Took(up_.mutex)) return StoppedBefore();
  std::lock_guard lock(up_.mutex, std::adopt_lock);
  for (uint64_t at = 0; at < bytes; at += kSlotBytes)
    RETURN_IF_ERROR(UploadChunk(static_cast<const char*>(from) + at, {to.segment, to.offset + at},
                                std::min(kSlotBytes, bytes - at), ticket));
  return absl::OkStatus();
}

absl::Status Stager::DownloadChunk(const Part& part, uint64_t at, uint64_t bytes,
                                   std::vector<Waiting>* waiting) {
  ASSIGN_OR_RETURN(Slot * slot, Room(down_, bytes, waiting));
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
  RETURN_IF_ERROR(device_.Here());
  if (!Took(down_.mutex)) return StoppedBefore();
  std::lock_guard lock(down_.mutex, std::adopt_lock);
  std::vector<Waiting> waiting;
  for (const Part& part : parts)
    for (uint64_t at = 0; at < part.bytes; at += kSlotBytes)
      RETURN_IF_ERROR(DownloadChunk(part, at, std::min(kSlotBytes, part.bytes - at), &waiting));
  return Flush(&waiting);
}

}  // namespace keel
