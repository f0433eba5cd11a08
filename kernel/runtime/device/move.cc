#include "kernel/runtime/device/move.h"

namespace keel {
namespace {

void DropBlock(void* arg) {
  std::unique_ptr<DeviceBlock> block(static_cast<DeviceBlock*>(arg));
  if (block->shared) {
    for (int queue = 0; queue < kQueues; queue++)
      block->shared->device_block()->Use(queue, block->used[queue]);
    return;
  }
  if (block->foreign.empty()) return block->home->pool().Free(block->piece, block->Last());
  block->foreign.front().last = block->Last();
  block->home->ReleaseWhenDone(block->foreign);
}

// After a failed copy: everything encoded by now may use the array.
struct UsedOnFailure {
  std::span<const ArrayRef> arrays;
  bool failed = true;
  ~UsedOnFailure() {
    for (const ArrayRef& array : failed ? arrays : std::span<const ArrayRef>()) {
      DeviceBlock& block = *array->device_block();
      for (int queue : {KEEL_QUEUE_TRANSFER + 0, block.home->download_queue()})
        block.Use(queue, block.home->Encoded().of[queue]);
    }
  }
};

}  // namespace

void DeviceBlock::Use(int queue, uint64_t batch) { RaiseTo(used[queue], batch); }

namespace {

struct Drop {
  void operator()(DeviceBlock* block) const { DropBlock(block); }
};
using BlockOwner = std::unique_ptr<DeviceBlock, Drop>;

absl::StatusOr<ArrayRef> HeaderOf(BlockOwner block, DType dtype, std::span<const int64_t> shape) {
  void* data = reinterpret_cast<void*>(block->piece.address());
  absl::StatusOr<ArrayRef> array =
      NewDeviceHeader(dtype, shape, {block->home->id(), data, block.get(), DropBlock, Download});
  if (array.ok()) block.release();
  return array;
}

}  // namespace

absl::StatusOr<ArrayRef> NewDeviceArray(Accelerator& device, DType dtype, std::span<const int64_t> shape,
                                        int queue) {
  ASSIGN_OR_RETURN(int64_t count, CountOf(shape, dtype));
  BlockOwner block(new DeviceBlock(device.shared_from_this()));
  ASSIGN_OR_RETURN(block->piece, device.pool().Allocate(BytesOf(dtype, count), queue));
  return HeaderOf(std::move(block), dtype, shape);
}

absl::StatusOr<ArrayRef> WrapOnDevice(Accelerator& device, const keel_tensor& t, ReleaseFn release,
                                      void* arg) {
  ASSIGN_OR_RETURN(DType dtype, CheckType(t));
  const std::span<const int64_t> shape(t.shape, static_cast<size_t>(t.ndim));
  ASSIGN_OR_RETURN(int64_t count, CountOf(shape, dtype));
  if (!IsRowMajor(t))
    return Annotate(Invalid("the tensor on device ", device.name(), " is strided; expected it row-major"),
                    kErrorHint, "make it contiguous on its device first");
  if (!count) {
    ASSIGN_OR_RETURN(ArrayRef empty, NewDeviceArray(device, dtype, shape, KEEL_QUEUE_COMPUTE));
    release(arg);
    return empty;
  }
  void* data = static_cast<char*>(t.data) + t.byte_offset;
  std::list<Foreign> memory{{{}, [](void*) {}, nullptr, {}}};
  keel_segment& segment = memory.front().segment;
  BlockOwner block(new DeviceBlock(device.shared_from_this()));
  const uint64_t bytes = BytesOf(dtype, count);
  ASSIGN_OR_RETURN(segment, device.WrapSegment(KEEL_SEGMENT_DEVICE, data, bytes));
  if (segment.address % device.alignment()) {
    device.UnwrapSegment(segment);
    return Annotate(Invalid("the tensor's address on device ", device.name(), " is not a multiple of ",
                            device.alignment(), ", the alignment of the device"),
                    kErrorHint, "copy it on its device first");
  }
  block->piece = {nullptr, &segment, 0, bytes};
  block->foreign = std::move(memory);
  DeviceBlock& made = *block;
  ASSIGN_OR_RETURN(ArrayRef array, HeaderOf(std::move(block), dtype, shape));
  made.foreign.front().release = release;  // not before: on failure the caller keeps the tensor
  made.foreign.front().arg = arg;
  return array;
}

namespace {

// Another array with the elements of `array`, or, with another shape, with the first of them.
absl::StatusOr<ArrayRef> ShareAs(keel_array* array, std::span<const int64_t> shape) {
  ArrayRef shared = ArrayRef::Share(array);
  if (DeviceBlock* of = array->device_block()) {
    BlockOwner block(new DeviceBlock(of->home));
    block->piece = of->piece;
    block->written = of->written;
    block->outcome = of->outcome;
    block->shared = std::move(shared);
    return HeaderOf(std::move(block), array->dtype, shape);
  }
  keel_tensor view = array->view;
  view.shape = const_cast<int64_t*>(shape.data());
  ASSIGN_OR_RETURN(ArrayRef made,
                   WrapArray(
                       view, [](void* of) { ReleaseArray(static_cast<keel_array*>(of)); }, array));
  (void)shared.Detach();  // the new array's
  return made;
}

}  // namespace

absl::StatusOr<ArrayRef> ShareElements(keel_array* array) { return ShareAs(array, array->shape()); }

absl::StatusOr<ArrayRef> ShareFirst(keel_array* array, int64_t count) {
  std::vector<int64_t> shape(array->shape().begin(), array->shape().end());
  shape[0] = count;
  return ShareAs(array, shape);
}

absl::StatusOr<ArrayRef> Upload(Accelerator& device, keel_array* array) {
  ArrayRef ready = ArrayRef::Share(array);
  if (!array->contiguous) {
    ASSIGN_OR_RETURN(ready, CopyArray(array->view));
  }
  ASSIGN_OR_RETURN(ArrayRef made, NewDeviceArray(device, array->dtype, array->shape(), KEEL_QUEUE_TRANSFER));
  UsedOnFailure use{{&made, 1}};
  uint64_t batch = 0;
  Stager::UploadPart part{ready->data(), made->device_block()->place(), ready->bytes()};
  RETURN_IF_ERROR(device.stager().Upload({&part, 1}, &batch));
  use.failed = false;
  made->device_block()->written.of[KEEL_QUEUE_TRANSFER] = batch;
  made->device_block()->Use(KEEL_QUEUE_TRANSFER, batch);
  return made;
}

absl::Status DownloadAll(std::span<ArrayRef> arrays) {
  if (arrays.empty()) return absl::OkStatus();
  Accelerator& home = *arrays[0]->device_block()->home;
  std::vector<ArrayRef> made(arrays.size());
  std::vector<Stager::DownloadPart> parts;
  Batches after;
  for (size_t i = 0; i < arrays.size(); i++) {
    ASSIGN_OR_RETURN(made[i], NewArray(arrays[i]->dtype, arrays[i]->shape(), false));
    DeviceBlock& block = *arrays[i]->device_block();
    for (int q = 0; q < kQueues; q++) after.of[q] = std::max(after.of[q], block.written.of[q]);
    parts.push_back({block.place(), made[i]->data(), made[i]->bytes()});
  }
  UsedOnFailure use{arrays};
  RETURN_IF_ERROR(home.stager().Download(parts, after));
  use.failed = false;
  for (size_t i = 0; i < arrays.size(); i++)
    if (RunOutcome* outcome = arrays[i]->device_block()->outcome.get()) RETURN_IF_ERROR(outcome->Get());
  std::move(made.begin(), made.end(), arrays.begin());
  return absl::OkStatus();
}

absl::StatusOr<ArrayRef> Download(keel_array* array) {
  ArrayRef made = ArrayRef::Share(array);
  RETURN_IF_ERROR(DownloadAll({&made, 1}));
  return made;
}

namespace {

absl::Status CopyNow(Accelerator& to, const DeviceBlock& target, const Accelerator& other, DeviceAddress from,
                     uint64_t bytes) {
  uint64_t batch = 0;
  {
    Encoder encoder(to, KEEL_QUEUE_TRANSFER);
    RETURN_IF_ERROR(encoder.CopyFrom(target.place(), other, from, bytes));
    ASSIGN_OR_RETURN(batch, encoder.Submit());
  }
  return to.HostWait(KEEL_QUEUE_TRANSFER, batch);
}

// Copies directly from another device and waits, so that the source may be freed. Unimplemented: not between
// these two.
absl::StatusOr<ArrayRef> CopyAcross(Accelerator& to, keel_array* array) {
  DeviceBlock& from = *array->device_block();
  if (!to.CanCopyFrom(*from.home)) return Unimplemented(to.name(), " cannot copy from ", from.home->name());
  RETURN_IF_ERROR(WaitFor(array));
  ASSIGN_OR_RETURN(ArrayRef made, NewDeviceArray(to, array->dtype, array->shape(), KEEL_QUEUE_TRANSFER));
  UsedOnFailure use{{&made, 1}};
  absl::Status copied = CopyNow(to, *made->device_block(), *from.home, from.place(), array->bytes());
  // A copy that was encoded before the failure may still read the source, which its own device cannot know.
  if (!copied.ok() && !absl::IsUnimplemented(copied)) to.FinishWork(to.Encoded());
  RETURN_IF_ERROR(copied);
  use.failed = false;
  return made;
}

}  // namespace

absl::StatusOr<ArrayRef> MoveTo(keel_array* array, Device* device) {
  if (array->symbolic()) return NeedHostMemory("the array", array);
  std::shared_ptr<Accelerator> to;
  if (device && !device->host_memory()) {
    ASSIGN_OR_RETURN(to, Accelerator::Of(*device));
  }
  Accelerator* from = array->device_block() ? array->device_block()->home.get() : nullptr;
  if (from == to.get()) return ArrayRef::Share(array);
  if (to && from) {
    absl::StatusOr<ArrayRef> straight = CopyAcross(*to, array);
    if (!absl::IsUnimplemented(straight.status())) return straight;
  }
  ArrayRef host = ArrayRef::Share(array);
  if (from) {
    ASSIGN_OR_RETURN(host, Download(array));
  }
  return to ? Upload(*to, host.get()) : host;
}

absl::Status WaitFor(keel_array* array) {
  DeviceBlock* block = array->device_block();
  if (!block) return absl::OkStatus();
  RETURN_IF_ERROR(block->home->HostWait(block->written));
  return block->outcome ? block->outcome->Get() : absl::OkStatus();
}

absl::Status NeedHostMemory(std::string_view what, const keel_array* array) {
  if (array && array->symbolic())
    return Annotate(Error(absl::StatusCode::kFailedPrecondition, std::string(what), " is symbolic: ",
                          array->symbolic()->Describe(), "; expected an array with elements"),
                    kErrorHint, "elements exist only when the traced function runs");
  if (!array || !array->device_block()) return absl::OkStatus();
  return Annotate(
      Error(absl::StatusCode::kFailedPrecondition, std::string(what), " is in the memory of device ",
            DeviceOf(array), "; expected an array in host memory"),
      kErrorHint, "copy it with keel_array_to(..., NULL, ...)");
}

absl::StatusOr<ArrayRef> InHostMemory(std::string_view what, keel_array* array) {
  if (array->symbolic()) return NeedHostMemory(what, array);
  return MoveTo(array, nullptr);
}

std::string DeviceOf(const keel_array* array) {
  return array->device_block() ? array->device_block()->home->name() : "";
}

}  // namespace keel
