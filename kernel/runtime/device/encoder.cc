// encoder.cc: work encoded on one queue of a device: copies, recordings, waits and their submission.
#include "kernel/runtime/device/accelerator.h"

namespace keel {

Encoder::Encoder(Accelerator& device, int queue)
    : device_(device), queue_(queue), lock_(device.queues_[queue].mutex) {}

absl::Status Encoder::Copy(DeviceAddress to, DeviceAddress from, uint64_t bytes) {
  if (!bytes) return absl::OkStatus();
  HostCall call;
  return device_.Finish(
      call, device_.table().copy(handle(), to.segment, to.offset, from.segment, from.offset, bytes), "copy");
}

absl::Status Encoder::CopyFrom(DeviceAddress to, const Accelerator& other, DeviceAddress from,
                               uint64_t bytes) {
  if (!bytes) return absl::OkStatus();
  HostCall call;
  keel_rc rc = device_.table().copy_from(handle(), to.segment, to.offset, other.handle(), from.segment,
                                         from.offset, bytes);
  return device_.Finish(call, rc, "copy_from");
}

absl::Status Encoder::Fill(DeviceAddress at, uint64_t bytes, uint32_t value) {
  HostCall call;
  return device_.Finish(call, device_.table().fill(handle(), at.segment, at.offset, bytes, value), "fill");
}

absl::Status Encoder::BeginRecording(std::span<const uint64_t> table) {
  HostCall call;
  const auto n = static_cast<uint32_t>(table.size());
  return device_.Finish(call, device_.table().record_begin(handle(), table.data(), n), "record_begin");
}

absl::Status Encoder::EndRecording(keel_recording* out) {
  HostCall call;
  RETURN_IF_ERROR(device_.Finish(call, device_.table().record_end(handle(), out), "record_end"));
  if (!out || *out) return absl::OkStatus();
  return Internal("device ", device_.name(), ": record_end returned no recording");
}

absl::Status Encoder::Replay(keel_recording recording, std::span<const uint64_t> table) {
  HostCall call;
  const auto n = static_cast<uint32_t>(table.size());
  return device_.Finish(call, device_.table().replay(handle(), recording, table.data(), n), "replay");
}

absl::Status Encoder::Timestamp(const keel_segment& to, uint64_t offset) {
  HostCall call;
  return device_.Finish(call, device_.table().timestamp(handle(), &to, offset), "timestamp");
}

absl::Status Encoder::Wait(int other, uint64_t batch) {
  if (other == queue_ || device_.IsDone(other, batch)) return absl::OkStatus();
  uint64_t ticket = device_.TicketOf(other, batch);
  if (!ticket) return absl::OkStatus();
  HostCall call;
  return device_.Finish(call, device_.table().queue_wait(handle(), device_.queue(other), ticket),
                        "queue_wait");
}

absl::StatusOr<uint64_t> Encoder::Submit() {
  HostCall call;
  uint64_t ticket = 0, closed = batch();
  RETURN_IF_ERROR(device_.Finish(call, device_.table().submit(handle(), &ticket), "submit"));
  if (!ticket) return Internal("device ", device_.name(), ": submit returned no ticket; tickets begin at 1");
  const uint64_t before = std::exchange(device_.queues_[queue_].ticket, ticket);
  if (ticket <= before)
    return Internal("device ", device_.name(), ": submit returned ticket ", ticket, " after ", before,
                    "; the tickets of a queue grow");
  device_.queues_[queue_].launches = 0;
  device_.AddTicket(queue_, ticket);
  return closed;
}

}  // namespace keel
