// device.cc: the driver, its devices, contexts and memory.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>

#include "fake.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

struct CUctx_st {
  CUdevice device = 0;
};

namespace {

CUctx_st contexts[8];
std::set<std::pair<CUcontext, CUcontext>> peers;
thread_local CUcontext current = nullptr;
constexpr size_t kGuard = 256;
constexpr unsigned char kFresh = 0xff, kGuarded = 0xa5;  // 0xff...: NaN

// With AddressSanitizer an access beyond the end is found at once.
void Poison([[maybe_unused]] const unsigned char* begin, [[maybe_unused]] size_t bytes,
            [[maybe_unused]] bool on) {
#if defined(__SANITIZE_ADDRESS__)
  on ? __asan_poison_memory_region(begin, bytes) : __asan_unpoison_memory_region(begin, bytes);
#endif
}

CUresult Allocate(size_t bytes, uintptr_t* out) {
  fake::State& s = fake::state();
  if (!current) return CUDA_ERROR_INVALID_CONTEXT;
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult forbidden = fake::NotInCapture()) return forbidden;
  const size_t whole = (bytes + kGuard - 1) / kGuard * kGuard;
  auto* memory = static_cast<unsigned char*>(std::aligned_alloc(kGuard, whole + kGuard));
  if (!memory) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(memory, kFresh, bytes);
  std::memset(memory + bytes, kGuarded, whole + kGuard - bytes);
  Poison(memory + bytes, whole + kGuard - bytes, true);
  *out = reinterpret_cast<uintptr_t>(memory);
  s.memory[*out] = bytes;
  s.alive++;
  return CUDA_SUCCESS;
}
CUresult Free(uintptr_t address) {
  fake::State& s = fake::state();
  if (CUresult forbidden = fake::NotInCapture()) return forbidden;
  const auto at = s.memory.find(address);
  if (at == s.memory.end()) return CUDA_ERROR_INVALID_VALUE;
  auto* memory = reinterpret_cast<unsigned char*>(address);
  Poison(memory + at->second, kGuard, false);
  for (size_t i = 0; i < kGuard; i++)
    if (memory[at->second + i] != kGuarded) {
      fake::Complain("a write beyond the end of " + std::to_string(at->second) + " bytes");
      break;
    }
  std::memset(memory, kFresh, at->second);
  std::free(memory);
  s.memory.erase(at);
  s.owners.erase(address);
  s.alive--;
  return CUDA_SUCCESS;
}

}  // namespace

int fake::OwnerOf(uintptr_t address) {
  auto at = state().owners.upper_bound(address);
  if (at == state().owners.begin()) return -1;
  --at;
  return address < at->first + state().memory.at(at->first) ? at->second : -1;
}
int fake::DeviceOf(CUcontext context) { return context->device; }

EXPORT CUresult cuInit(unsigned) {
  ENTER("cuInit");
  return static_cast<CUresult>(fake::Variable("FAKECUDA_INIT", 0));
}
EXPORT CUresult cuDriverGetVersion(int* version) {
  ENTER("cuDriverGetVersion");
  *version = static_cast<int>(fake::Variable("FAKECUDA_VERSION", 13000));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGetErrorName(CUresult code, const char** name) {
  static const std::map<int, const char*> names = {{1, "CUDA_ERROR_INVALID_VALUE"},
                                                   {2, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                   {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                                                   {719, "CUDA_ERROR_LAUNCH_FAILED"}};
  const auto at = names.find(code);
  *name = at == names.end() ? "CUDA_ERROR" : at->second;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "as the fake driver was told";
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetCount(int* n) {
  ENTER("cuDeviceGetCount");
  *n = static_cast<int>(fake::Variable("FAKECUDA_DEVICES", 1));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGet(CUdevice* device, int i) {
  ENTER("cuDeviceGet");
  *device = i;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetName(char* name, int bytes, CUdevice device) {
  ENTER("cuDeviceGetName");
  std::snprintf(name, static_cast<size_t>(bytes), "Fake GPU %c", 'A' + device);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  ENTER("cuDeviceGetUuid");
  for (int i = 0; i < 16; i++) uuid->bytes[i] = static_cast<char>(i == 0 ? 0xa0 + device : i);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice) {
  ENTER("cuDeviceTotalMem");
  *bytes = size_t{1} << 30;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  ENTER("cuDeviceGetAttribute");
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? 9
           : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? 0
                                                                       : 2;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  ENTER("cuDevicePrimaryCtxRetain");
  contexts[device].device = device;
  *context = &contexts[device];
  fake::state().alive++;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
  ENTER("cuDevicePrimaryCtxRelease");
  fake::state().alive--;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  ENTER("cuCtxSetCurrent");
  current = context;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceCanAccessPeer(int* can, CUdevice, CUdevice) {
  ENTER("cuDeviceCanAccessPeer");
  *can = static_cast<int>(fake::Variable("FAKECUDA_PEERS", 1));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxEnablePeerAccess(CUcontext other, unsigned) {
  ENTER("cuCtxEnablePeerAccess");
  if (!fake::Variable("FAKECUDA_PEERS", 1)) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  return peers.insert({current, other}).second ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}
EXPORT CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  ENTER("cuPointerGetAttribute");
  const int owner = fake::OwnerOf(address);
  if (owner < 0 || attribute != CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) return CUDA_ERROR_INVALID_VALUE;
  *static_cast<int*>(value) = owner;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t bytes) {
  ENTER("cuMemAlloc");
  if (bytes > size_t{1} << 30) return CUDA_ERROR_OUT_OF_MEMORY;
  uintptr_t address = 0;
  const CUresult result = Allocate(bytes, &address);
  *out = address;
  if (!result) fake::state().owners[address] = current->device;
  return result;
}
EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
  ENTER("cuMemFree");
  return Free(address);
}
EXPORT CUresult cuMemHostAlloc(void** out, size_t bytes, unsigned) {
  ENTER("cuMemHostAlloc");
  uintptr_t address = 0;
  const CUresult result = Allocate(bytes, &address);
  *out = reinterpret_cast<void*>(address);
  return result;
}
EXPORT CUresult cuMemFreeHost(void* memory) {
  ENTER("cuMemFreeHost");
  return Free(reinterpret_cast<uintptr_t>(memory));
}
EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* out, void* memory, unsigned) {
  ENTER("cuMemHostGetDevicePointer");
  *out = reinterpret_cast<uintptr_t>(memory);
  return CUDA_SUCCESS;
}
