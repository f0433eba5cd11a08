// array.cc: arrays (keel.h).
#include "kernel/language/values/array.h"

#include "kernel/api/handles.h"
#include "kernel/language/values/dlpack.h"
#include "kernel/runtime/device/move.h"

using namespace keel;

namespace {

absl::Status CheckOne(const char* function, const void* versioned, const void* legacy) {
  if (!versioned == !legacy)
    return Invalid(function, ": 'versioned' and 'legacy' are both ", versioned ? "given" : "NULL",
                   "; exactly one is needed");
  return absl::OkStatus();
}

// The device of the tensor is of the first plugin that has the memory.
absl::StatusOr<ArrayRef> WrapAnywhere(Context& c, const keel_tensor& t, ReleaseFn release, void* arg) {
  if (InHostMemory(t)) return WrapArray(t, release, arg);
  std::string tried;
  for (Device* device : c.registry.Devices()) {
    if (device->host_memory() || !device->plugin().device.segment_wrap) continue;
    ASSIGN_OR_RETURN(std::shared_ptr<Accelerator> home, Accelerator::Of(*device));
    if (home->id().type != t.device.type || home->id().id != t.device.id) continue;
    absl::StatusOr<ArrayRef> made = WrapOnDevice(*home, t, release, arg);
    if (!absl::IsUnimplemented(made.status())) return made;
    absl::StrAppend(&tried, "; ", made.status().message());
  }
  return Annotate(Unimplemented("the tensor is in memory of DLPack's device (", t.device.type, ", ",
                                t.device.id, "), which no device here can use in place", tried),
                  kErrorHint, "copy it to host memory first");
}

template <typename Managed>
absl::Status GiveExport(Managed* made, Managed** out) {
  if (!made) return Exhausted("no memory for a DLPack tensor");
  *out = made;
  return absl::OkStatus();
}

}  // namespace

keel_rc keel_array_new(keel_context* c, keel_dt code, const int64_t* shape, int32_t ndim, keel_array** out,
                       keel_error** err) {
  return GuardInline(err, [&]() -> absl::Status {
    if (NeedsCheck(0, c, shape, out) || static_cast<uint32_t>(ndim) > KEEL_MAX_RANK) [[unlikely]]
      RETURN_IF_ERROR(CheckGiven("keel_array_new", "context shape(ndim) out", {c, shape, ndim, out}));
    std::optional<DType> dtype = DTypeOf(code);
    if (!dtype) return Invalid("dtype code ", code, " is not one of Keel's");
    std::span<const int64_t> dims(shape, static_cast<size_t>(ndim));
    ASSIGN_OR_RETURN(int64_t count, CountOf(dims, *dtype));
    uint64_t bytes = BytesOf(*dtype, count), limit = c->state->memory;
    if (limit && bytes > limit)
      return Exhausted("an array of ", bytes, " bytes; the context's option \"memory\" is ", limit);
    return Give(NewArray(*dtype, dims, true), out);
  });
}

keel_rc keel_array_from_tensor(keel_context* c, const keel_tensor* t, void (*release)(void*), void* arg,
                               keel_array** out, keel_error** err) {
  return Guard(err, "context tensor out", {c, t, out}, [&]() -> absl::Status {
    return Give(release ? WrapArray(*t, release, arg) : CopyArray(*t), out);
  });
}

keel_rc keel_array_from_dlpack(keel_context* c, DLManagedTensorVersioned* versioned, DLManagedTensor* legacy,
                               keel_array** out, keel_error** err) {
  return Guard(err, "context out", {c, out}, [&, caller = __func__]() -> absl::Status {
    RETURN_IF_ERROR(CheckOne(caller, versioned, legacy));
    auto wrap = [&](const keel_tensor& t, ReleaseFn release, void* arg) {
      return WrapAnywhere(*c->state, t, release, arg);
    };
    return Give(versioned ? FromDlpack(versioned, wrap) : FromDlpack(legacy, wrap), out);
  });
}

keel_rc keel_array_to_dlpack(keel_array* a, DLManagedTensorVersioned** versioned, DLManagedTensor** legacy,
                             keel_error** err) {
  return Guard(err, "array", {a}, [&, caller = __func__]() -> absl::Status {
    RETURN_IF_ERROR(CheckOne(caller, versioned, legacy));
    if (a->symbolic()) return NeedHostMemory("the array", a);
    RETURN_IF_ERROR(WaitFor(a));
    return versioned ? GiveExport(ToDlpack(a), versioned) : GiveExport(ToDlpackLegacy(a), legacy);
  });
}

void keel_array_tensor(const keel_array* a, keel_tensor* out) {
  if (!NeedsCheck(0, a, out)) [[likely]]
    *out = a->view;
  else if (out)
    *out = {};
}

keel_rc keel_array_to(keel_context* c, keel_array* a, const char* device, keel_array** out,
                      keel_error** err) {
  return Guard(err, "context array out", {c, a, out}, [&]() -> absl::Status {
    Device* to = nullptr;
    if (device) {
      ASSIGN_OR_RETURN(to, c->state->registry.FindDevice(device));
    }
    auto cancelled = [&] { return c->state->stopper.asked.load(std::memory_order_relaxed) != 0; };
    CancellableWaits waits(cancelled);
    return Give(MoveTo(a, to), out);
  });
}

keel_rc keel_array_wait(keel_array* a, keel_error** err) {
  return Guard(err, "array", {a}, [&]() -> absl::Status { return WaitFor(a); });
}

const char* keel_array_device(const keel_array* a) {
  return a && a->device_block() ? a->device_block()->home->name().c_str() : "";
}

keel_array* keel_array_retain(keel_array* a) {
  if (a) RetainArray(a);
  return a;
}

void keel_array_free(keel_array* a) { ReleaseArray(a); }
