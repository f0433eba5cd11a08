// loader.cc: opens libcuda.so.1 and lists devices. The plugin loads without a driver; `keel doctor` then
// shows Api::why.
#include <dlfcn.h>

#include <cstdio>

#include "driver.h"
#include "sdk/plugin/choice.h"
#include "sdk/plugin/disk_cache.h"

namespace keel_cuda {
namespace {

constexpr int kNeededVersion = 13000;  // the build's kernels need a driver of their major version

std::string VersionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// "": all functions are there.
std::string FindFunctions(void* library, const std::string& path, Api* api) {
#define KEEL_TEXT(name) #name
#define CUDA_FUNCTION(name)                                                                                  \
  api->name##_ = reinterpret_cast<decltype(api->name##_)>(dlsym(library, KEEL_TEXT(name)));                  \
  if (!api->name##_)                                                                                         \
    return path + " has no " KEEL_TEXT(name) "; expected a driver for CUDA " + VersionText(kNeededVersion) + \
           " or newer (580)";
#include "functions.inc"
#undef CUDA_FUNCTION
#undef KEEL_TEXT
  return "";
}

// The meaning of the results of cuInit that have a remedy.
std::string WhyNoInit(const std::string& path, CUresult result, const std::string& driver) {
  if (result == CUDA_ERROR_STUB_LIBRARY)
    return path +
           " is the stub of a CUDA toolkit, not a driver; remove the folder stubs from the library path";
  if (result == CUDA_ERROR_NO_DEVICE) {
    const char* visible = secure_getenv("CUDA_VISIBLE_DEVICES");
    return driver + " finds no device" +
           (visible ? " (CUDA_VISIBLE_DEVICES='" + std::string(visible) + "')" : "");
  }
  if (result == CUDA_ERROR_NOT_INITIALIZED)
    return "cuInit gave 3: CUDA was used in this process before fork(); start workers with exec";
  return "cuInit gave " + std::to_string(static_cast<int>(result)) +
         "; check that the kernel module nvidia is loaded and fits the driver's version (nvidia-smi)";
}

std::string ListDevices(Api* api, const std::string& driver) {
  int n = 0;
  if (CUresult result = api->cuDeviceGetCount_(&n)) return "cuDeviceGetCount gave " + Describe(*api, result);
  if (!n) return WhyNoInit("", CUDA_ERROR_NO_DEVICE, driver);
  std::vector<CUdevice> found(static_cast<size_t>(n));
  std::vector<keel::plugin::Identity> known;
  for (int i = 0; i < n; i++) {
    CUuuid uuid{};
    char name[128] = "";
    CUdevice& device = found[static_cast<size_t>(i)];
    if (CUresult result = api->cuDeviceGet_(&device, i)) return "cuDeviceGet gave " + Describe(*api, result);
    if (api->cuDeviceGetName_(name, sizeof name, device) || api->cuDeviceGetUuid_(&uuid, device))
      return "the driver does not describe device " + std::to_string(i);
    known.push_back(
        {name, keel::plugin::hexadecimal(reinterpret_cast<const uint8_t*>(uuid.bytes), sizeof uuid.bytes)});
  }
  std::string why;
  for (size_t i : keel::plugin::choose_devices(settings().devices, "KEEL_CUDA_DEVICES", known, &why))
    api->devices.push_back(found[i]);
  return why;
}

std::string Open(Api* api) {
  const std::string path = settings().library.empty() ? "libcuda.so.1" : settings().library;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return std::string("no NVIDIA driver: ") + dlerror() + "; install the GPU's driver";
  api->cuInit_ = reinterpret_cast<decltype(api->cuInit_)>(dlsym(library, "cuInit"));
  api->cuDriverGetVersion_ =
      reinterpret_cast<decltype(api->cuDriverGetVersion_)>(dlsym(library, "cuDriverGetVersion"));
  if (!api->cuInit_ || !api->cuDriverGetVersion_) return path + " has no cuInit: it is no CUDA driver";
  const CUresult init = api->cuInit_(0);
  const bool told = !api->cuDriverGetVersion_(&api->version);
  const std::string driver = "the driver (CUDA " + VersionText(api->version) + ")";
  if (init == CUDA_ERROR_STUB_LIBRARY) return WhyNoInit(path, init, driver);
  if (told && api->version < kNeededVersion)
    return "the driver supports CUDA " + VersionText(api->version) + "; expected " +
           VersionText(kNeededVersion) + " or newer: install driver 580 or newer";
  if (init) return WhyNoInit(path, init, driver);
  if (std::string why = FindFunctions(library, path, api); !why.empty()) return why;
  return ListDevices(api, driver);
}

}  // namespace

std::string Describe(const Api& api, CUresult result) {
  const char *name = nullptr, *text = nullptr;
  api.cuGetErrorName_(result, &name);
  api.cuGetErrorString_(result, &text);
  const std::string number = std::to_string(static_cast<int>(result));
  return name && text ? std::string(name) + " (" + number + "): " + text : number;
}

Capability CapabilityOf(CUdevice device) {
  Capability c;
  cuda().cuDeviceGetAttribute_(&c.major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  cuda().cuDeviceGetAttribute_(&c.minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  return c;
}

void DescribeDevice(CUdevice device, keel_device_info* out) {
  CUuuid uuid{};
  size_t memory = 0;
  int processors = 0;
  cuda().cuDeviceGetName_(out->description, sizeof out->description - 1, device);
  if (!cuda().cuDeviceGetUuid_(&uuid, device)) std::copy_n(uuid.bytes, sizeof out->uuid, out->uuid);
  if (!cuda().cuDeviceTotalMem_(&memory, device)) out->memory = memory;
  cuda().cuDeviceGetAttribute_(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  const Capability c = CapabilityOf(device);
  out->dl_type = 2;
  out->alignment = 256;
  std::snprintf(out->capabilities, sizeof out->capabilities,
                "compute %d.%d, %d multiprocessors, driver of CUDA %s", c.major, c.minor, processors,
                VersionText(cuda().version).c_str());
}

const Settings& settings() {
  using keel::plugin::is_set, keel::plugin::variable;
  static const Settings& read = *new Settings([] {
    Settings s;
    s.library = variable("KEEL_CUDA_LIBRARY");
    s.devices = variable("KEEL_CUDA_DEVICES");
    s.cache = variable("KEEL_CUDA_CACHE") == "0" ? "" : keel::plugin::cache_folder();
    s.nvrtc = variable("KEEL_CUDA_NVRTC");
    s.blas = variable("KEEL_CUDA_CUBLASLT");
    s.dnn = variable("KEEL_CUDA_CUDNN");
    s.no_recordings = is_set("KEEL_CUDA_NO_RECORDINGS");
    s.tf32 = is_set("KEEL_CUDA_TF32");
    return s;
  }());
  return read;
}

// Never destroyed: the driver may be gone when destructors run at exit.
const Api& cuda() {
  static const Api* const loaded = [] {
    auto* api = new Api;
    api->why = Open(api);
    return api;
  }();
  return *loaded;
}

}  // namespace keel_cuda
