// device.cc: opening and closing a device, its memory, and errors of the driver.
#include "device.h"

#include <memory>

namespace keel_cuda {
namespace {

// Errors after which the context is unusable until the process ends.
bool IsFinal(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
      return true;
    default:
      return false;
  }
}

// The remedy of errors when code is loaded.
std::string Remedy(const keel_dev_s& d, CUresult result) {
  const std::string chip = std::to_string(d.capability.major) + "." + std::to_string(d.capability.minor);
  if (result == CUDA_ERROR_NO_BINARY_FOR_GPU)
    return "; this build has no code for compute capability " + chip + ": add it to KEEL_CUDA_ARCHITECTURES";
  if (result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
    return "; the driver is older than the toolkit of this build: update it";
  if (result == CUDA_ERROR_NOT_INITIALIZED)
    return "; a child of fork() cannot use CUDA: start workers with exec";
  return "";
}

}  // namespace

keel_rc DeviceOpen(const keel_host* host, uint32_t i, const keel_kv*, uint32_t, keel_dev* out) {
  auto d = std::make_unique<keel_dev_s>();
  d->host = host;
  d->device = cuda().devices[i];
  d->capability = CapabilityOf(d->device);
  CUDA_TRY(d, cuDevicePrimaryCtxRetain, &d->context, d->device);
  *out = d.release();
  return KEEL_OK;
}

void DeviceClose(keel_dev d) {
  if (d->EnterToDestroy()) {
    d->blas.reset();
    d->dnn.reset();
    for (auto [image, library] : d->libraries) cuda().cuLibraryUnload_(library);
    for (auto& [source, library] : d->compiled) cuda().cuLibraryUnload_(library);
  }
  cuda().cuDevicePrimaryCtxRelease_(d->device);
  delete d;
}

namespace {

keel_rc AllocateHost(keel_dev d, uint64_t bytes, keel_segment* out) {
  CUdeviceptr there = 0;
  CUDA_TRY(d, cuMemHostAlloc, &out->host, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
  const CUresult mapped = cuda().cuMemHostGetDevicePointer_(&there, out->host, 0);
  if (mapped) cuda().cuMemFreeHost_(out->host);
  out->address = there;
  return d->Check(mapped, "cuMemHostGetDevicePointer");
}

}  // namespace

keel_rc SegmentAlloc(keel_dev d, uint32_t kind, uint64_t bytes, keel_segment* out) {
  if (keel_rc rc = d->Enter()) return rc;
  keel_segment made = {nullptr, 0, nullptr, bytes, kind, 0};
  if (kind == KEEL_SEGMENT_DEVICE) {
    CUdeviceptr there = 0;
    CUDA_TRY(d, cuMemAlloc, &there, bytes);
    made.address = there;
  } else if (keel_rc rc = AllocateHost(d, bytes, &made)) {
    return rc;
  }
  *out = made;
  return KEEL_OK;
}

void SegmentFree(keel_dev d, const keel_segment* segment) {
  if (!d->EnterToDestroy()) return;
  if (segment->kind == KEEL_SEGMENT_DEVICE)
    cuda().cuMemFree_(segment->address);
  else
    cuda().cuMemFreeHost_(segment->host);
}

keel_rc SegmentWrap(keel_dev d, uint32_t kind, void* memory, uint64_t bytes, keel_segment* out) {
  if (kind != KEEL_SEGMENT_DEVICE) return KEEL_UNIMPLEMENTED;
  if (keel_rc rc = d->Enter()) return rc;
  const auto address = reinterpret_cast<CUdeviceptr>(memory);
  int owner = -1;
  if (cuda().cuPointerGetAttribute_(&owner, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) ||
      owner != d->device)
    return KEEL_UNIMPLEMENTED;
  *out = {nullptr, address, nullptr, bytes, kind, 0};
  return KEEL_OK;
}

void SegmentUnwrap(keel_dev, const keel_segment*) {}

}  // namespace keel_cuda

keel_rc keel_dev_s::Check(CUresult result, const char* function) {
  using keel_cuda::Describe, keel_cuda::cuda;
  if (!result) return KEEL_OK;
  std::string text =
      std::string(function) + " gave " + Describe(cuda(), result) + keel_cuda::Remedy(*this, result);
  if (keel_cuda::IsFinal(result)) {
    text += "; the device is lost: start a new process to use it again";
    std::lock_guard lock(lost_mutex);
    if (why_lost.empty()) why_lost = text;
    lost = true;
  }
  return host->fail(result == CUDA_ERROR_OUT_OF_MEMORY ? KEEL_OOM : KEEL_UNAVAILABLE, text.c_str());
}

keel_rc keel_dev_s::Enter() {
  if (lost) {
    std::lock_guard lock(lost_mutex);
    return host->fail(KEEL_UNAVAILABLE, ("the device was lost earlier: " + why_lost).c_str());
  }
  return Check(keel_cuda::cuda().cuCtxSetCurrent_(context), "cuCtxSetCurrent");
}
