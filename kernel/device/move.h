// move.h: arrays that live on a device, and moving arrays between devices and the host.
#pragma once

#include "kernel/device/accelerator.h"
#include "kernel/values/array.h"

namespace keel {

// The memory of one array on a device; keel_array::block. Given back, with the tickets of its last use, when
// the array goes.
struct DeviceBlock {
  std::shared_ptr<Accelerator> home;
  Piece piece;
  std::atomic<uint64_t> used[kQueues] = {};
  std::atomic<bool> unsettled{false};  // after a failure nobody knows what still uses it

  void Use(int queue, uint64_t ticket);  // work that touches it is done with that ticket
  Tickets Last() const { return {{used[0].load(), used[1].load()}}; }
  Place place() const { return PlaceOf(piece); }
};

// Contents are whatever was there. `queue`: the one that uses it first.
absl::StatusOr<ArrayRef> NewDeviceArray(Accelerator& device, DType dtype, std::span<const int64_t> shape,
                                        int queue);
// A new array, whose bytes may still be under way; strided arrays are made row-major.
absl::StatusOr<ArrayRef> Upload(Accelerator& device, keel_array* array);
absl::StatusOr<ArrayRef> Download(keel_array* array);  // to the host; waits
// The array itself where it is there already; between two devices straight, or else by way of the host.
absl::StatusOr<ArrayRef> MoveTo(keel_array* array, Device* device);  // null: host memory
// Waits until the array's bytes are there.
absl::Status WaitFor(keel_array* array);
// The error of code that can only read host memory; OK if the array is there.
absl::Status NeedHostMemory(std::string_view what, const keel_array* array);
std::string DeviceOf(const keel_array* array);  // "hostile:0"; "" for host memory

}  // namespace keel
