// fault_slots.cc: the fault bytes of runs in flight.
#include <cstring>

#include "kernel/runtime/device/accelerator.h"

namespace keel {

FaultSlots::~FaultSlots() {
  for (const auto& s : segments_) {
    device_.FreeSegment(s->device);
    if (s->host.bytes) device_.FreeSegment(s->host);
  }
}

absl::Status FaultSlots::Allocate(Segments* made) {
  constexpr uint64_t kBytes = kPerSegment * kStride;
  absl::StatusOr<keel_segment> memory = device_.NewSegment(KEEL_SEGMENT_SHARED, kBytes);
  if (memory.ok()) made->device = *memory;
  if (!absl::IsUnimplemented(memory.status())) return memory.status();
  ASSIGN_OR_RETURN(made->device, device_.NewSegment(KEEL_SEGMENT_DEVICE, kBytes));
  absl::StatusOr<keel_segment> copies = device_.NewSegment(KEEL_SEGMENT_READBACK, kBytes);
  if (copies.ok())
    made->host = *copies;
  else
    device_.FreeSegment(made->device);
  return copies.status();
}

// Adds the slots of another segment. The first slot of all is kUnread.
absl::Status FaultSlots::Grow() {
  segments_.push_back(std::make_unique<Segments>());  // before the allocations, because it may throw
  if (absl::Status status = Allocate(segments_.back().get()); !status.ok()) {
    segments_.pop_back();
    return status;
  }
  auto first = static_cast<Slot>(segments_.size() - 1) * kPerSegment;
  for (Slot slot = first; slot < first + kPerSegment; slot++)
    if (slot != kUnread) free_.push_front({0, slot});
  return absl::OkStatus();
}

absl::StatusOr<FaultSlots::Slot> FaultSlots::TryTake() {
  std::lock_guard lock(mutex_);
  if (free_.empty() || !device_.KnownDone(KEEL_QUEUE_COMPUTE, free_.front().batch)) RETURN_IF_ERROR(Grow());
  auto slot = static_cast<Slot>(free_.front().what);
  free_.pop_front();
  return slot;
}

// If the device is full: returns unused segments of the pool and retries, as the pool does.
absl::StatusOr<FaultSlots::Slot> FaultSlots::Take() {
  absl::StatusOr<Slot> slot = TryTake();
  if (!absl::IsResourceExhausted(slot.status())) return slot;
  RETURN_IF_ERROR(device_.WaitForAll());
  device_.pool().Trim();
  return TryTake();
}

bool FaultSlots::HasSegments() {
  std::lock_guard lock(mutex_);
  return !segments_.empty();
}

void FaultSlots::GiveBack(Slot slot, uint64_t batch) noexcept {
  if (slot == kUnread) return;
  std::lock_guard lock(mutex_);
  try {
    free_.push_back({batch, slot});
  } catch (const std::bad_alloc&) {  // the slot stays unused
  }
}

absl::StatusOr<uint64_t> FaultSlots::AddressOf(Slot slot) {
  if (!HasSegments()) {
    ASSIGN_OR_RETURN(Slot first, Take());
    GiveBack(first, 0);
  }
  std::lock_guard lock(mutex_);
  return At(slot).device.address + Offset(slot);
}

absl::Status FaultSlots::Clear(Encoder& encoder, Slot slot) {
  if (slot == kUnread) return absl::OkStatus();
  std::lock_guard lock(mutex_);
  Segments& s = At(slot);
  if (!s.shared()) return encoder.Fill({&s.device, Offset(slot)}, sizeof(Fault), 0);
  std::memset(static_cast<char*>(s.device.host) + Offset(slot), 0, sizeof(Fault));
  return absl::OkStatus();
}

absl::Status FaultSlots::Save(Encoder& encoder, Slot slot) {
  if (slot == kUnread) return absl::OkStatus();
  std::lock_guard lock(mutex_);
  Segments& s = At(slot);
  if (s.shared()) return absl::OkStatus();
  return encoder.Copy({&s.host, Offset(slot)}, {&s.device, Offset(slot)}, sizeof(Fault));
}

Fault FaultSlots::Read(Slot slot) {
  std::lock_guard lock(mutex_);
  Segments& s = At(slot);
  Fault fault;
  std::memcpy(&fault, static_cast<char*>(s.shared() ? s.device.host : s.host.host) + Offset(slot),
              sizeof fault);
  return fault;
}

}  // namespace keel
