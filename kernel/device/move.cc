#include "kernel/device/move.h"

namespace keel {
namespace {

void DropBlock(void* arg) {
  std::unique_ptr<DeviceBlock> block(static_cast<DeviceBlock*>(arg));
  Pool& pool = block->home->pool();
  block->unsettled ? pool.FreeUnsettled(block->piece) : pool.Free(block->piece, block->Last());
}

// After a failed copy, work may still use the memory. Waits for the array's device; if that fails too, marks
// both arrays as unsettled.
struct SettleGuard {
  keel_array *array, *other = nullptr;
  ~SettleGuard() {
    if (!array || array->device_block()->home->pool().TrySettle()) return;
    array->device_block()->unsettled = true;
    if (other) other->device_block()->unsettled = true;
  }
};

}  // namespace

void DeviceBlock::Use(int queue, uint64_t ticket) {
  for (uint64_t seen = used[queue].load();
       seen < ticket && !used[queue].compare_exchange_weak(seen, ticket);) {
  }
}

absl::StatusOr<ArrayRef> NewDeviceArray(Accelerator& device, DType dtype, std::span<const int64_t> shape,
                                        int queue) {
  ASSIGN_OR_RETURN(int64_t count, CountOf(shape, dtype));
  struct Drop {
    void operator()(DeviceBlock* block) const { DropBlock(block); }
  };
  std::unique_ptr<DeviceBlock, Drop> block(new DeviceBlock{device.shared_from_this(), {}});
  ASSIGN_OR_RETURN(block->piece, device.pool().Allocate(static_cast<uint64_t>(count) * SizeOf(dtype), queue));
  absl::StatusOr<ArrayRef> array = NewDeviceHeader(
      dtype, shape, device.id(), reinterpret_cast<void*>(block->piece.address()), DropBlock, block.get());
  if (array.ok()) block.release();
  return array;
}

absl::StatusOr<ArrayRef> Upload(Accelerator& device, keel_array* array) {
  ArrayRef ready = ArrayRef::Share(array);
  if (!array->contiguous) {
    ASSIGN_OR_RETURN(ready, CopyArray(array->view));
  }
  ASSIGN_OR_RETURN(ArrayRef made, NewDeviceArray(device, array->dtype, array->shape(), KEEL_QUEUE_TRANSFER));
  uint64_t ticket = 0;
  SettleGuard guard{made.get()};
  RETURN_IF_ERROR(
      device.stager().Upload(ready->data(), made->device_block()->place(), ready->bytes(), &ticket));
  guard.array = nullptr;
  made->device_block()->Use(KEEL_QUEUE_TRANSFER, ticket);
  return made;
}

absl::StatusOr<ArrayRef> Download(keel_array* array) {
  ASSIGN_OR_RETURN(ArrayRef made, NewArray(array->dtype, array->shape(), false));
  DeviceBlock& block = *array->device_block();
  // The transfer queue is in order, so only work of the compute queue needs a wait.
  Stager::Part part{block.place(), made->data(), made->bytes(), block.Last().of[KEEL_QUEUE_COMPUTE]};
  SettleGuard guard{array};
  RETURN_IF_ERROR(block.home->stager().Download({&part, 1}));
  guard.array = nullptr;
  return made;
}

namespace {

// Copies directly from another device and waits, so that the source may be freed. Unimplemented: not between
// these two.
absl::StatusOr<ArrayRef> CopyAcross(Accelerator& to, keel_array* array) {
  DeviceBlock& from = *array->device_block();
  if (!to.CanCopyFrom(*from.home)) return Unimplemented(to.name(), " cannot copy from ", from.home->name());
  RETURN_IF_ERROR(WaitFor(array));
  ASSIGN_OR_RETURN(ArrayRef made, NewDeviceArray(to, array->dtype, array->shape(), KEEL_QUEUE_TRANSFER));
  SettleGuard guard{made.get(), array};
  uint64_t ticket = 0;
  {
    Encoder encoder(to, KEEL_QUEUE_TRANSFER);
    absl::Status copied =
        encoder.CopyFrom(made->device_block()->place(), *from.home, from.place(), array->bytes());
    if (absl::IsUnimplemented(copied)) guard.array = nullptr;  // nothing was encoded
    RETURN_IF_ERROR(copied);
    ASSIGN_OR_RETURN(ticket, encoder.Submit());
  }
  RETURN_IF_ERROR(to.HostWait(KEEL_QUEUE_TRANSFER, ticket));
  guard.array = nullptr;
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
  return array->device_block() ? array->device_block()->home->HostWait(array->device_block()->Last())
                               : absl::OkStatus();
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

std::string DeviceOf(const keel_array* array) {
  return array->device_block() ? array->device_block()->home->name() : "";
}

}  // namespace keel
