// move.h: arrays in device memory, and copies between devices and the host.
#pragma once

#include "kernel/language/values/array.h"
#include "kernel/runtime/device/outcome.h"

namespace keel {

// The device memory of one array (keel_array::device_block). Freed with the array, with the batches of its
// last use.
struct DeviceBlock {
  explicit DeviceBlock(std::shared_ptr<Accelerator> device) : home(std::move(device)) {}
  std::shared_ptr<Accelerator> home;
  Allocation piece;
  Batches written;  // that compute or upload the bytes; set before another thread has access
  std::atomic<uint64_t> used[kQueues] = {};  // last batches that read or write them
  std::shared_ptr<RunOutcome> outcome;       // of the run that computes the bytes; null: OK
  std::list<Foreign> foreign;                // one entry: memory of another owner; none: of the pool
  ArrayRef shared;                           // the array whose memory this is (ShareElements); null: its own

  void Use(int queue, uint64_t batch);  // records work that uses the block
  Batches Last() const { return {{used[0].load(), used[1].load(), used[2].load()}}; }
  DeviceAddress place() const { return AddressOf(piece); }
};

// Uninitialized. queue: the queue that uses it first.
absl::StatusOr<ArrayRef> NewDeviceArray(Accelerator& device, DType dtype, std::span<const int64_t> shape,
                                        int queue);
// An array in memory of the device that another library owns; release(arg) is called when the device no
// longer uses it. Unimplemented: the device does not have this memory. On failure release is not called.
absl::StatusOr<ArrayRef> WrapOnDevice(Accelerator& device, const keel_tensor& tensor, ReleaseFn release,
                                      void* arg);
// Another array with the same elements, in host or device memory.
absl::StatusOr<ArrayRef> ShareElements(keel_array* array);
// The first `count` slices of a row-major array, which share its memory.
absl::StatusOr<ArrayRef> ShareFirst(keel_array* array, int64_t count);
// A new array, whose copy may still be in flight; strided arrays become row-major.
absl::StatusOr<ArrayRef> Upload(Accelerator& device, keel_array* array);
// To the host; waits. The error of the run that computes the array, if it failed.
absl::StatusOr<ArrayRef> Download(keel_array* array);
absl::Status DownloadAll(std::span<ArrayRef> arrays);  // of one device, in place
// The array itself if it is there already. Between devices: a direct copy if possible, otherwise through the
// host.
absl::StatusOr<ArrayRef> MoveTo(keel_array* array, Device* device);  // null: host memory
// Waits until the array's bytes are written; the error of the run that computes them, if it failed.
absl::Status WaitFor(keel_array* array);
// The error for code that reads host memory only; OK if the array is in host memory.
absl::Status NeedHostMemory(std::string_view what, const keel_array* array);
// The array itself, or a copy of one in device memory. what: for the error of a symbolic array.
absl::StatusOr<ArrayRef> InHostMemory(std::string_view what, keel_array* array);
std::string DeviceOf(const keel_array* array);  // "hostile:0"; "" for host memory

}  // namespace keel
