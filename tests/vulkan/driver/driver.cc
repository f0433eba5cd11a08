// driver.cc: see driver.h. Control: the functions at the end, and DRIVER_FAIL=FUNCTION:NUMBER:CODE.
// DRIVER_COUNT=1 prints the calls of each function on stderr when the process ends.
#include "driver.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <tuple>
#include <type_traits>

namespace driver {

Functions below;

namespace {

enum Number : int {
#define VULKAN_FUNCTION(name) k##name,
#include "functions.inc"
  VULKAN_FUNCTION(CreateInstance)
#undef VULKAN_FUNCTION
      kFunctions
};
constexpr const char* kNames[] = {
#define VULKAN_FUNCTION(name) "vk" #name,
#include "functions.inc"
    VULKAN_FUNCTION(CreateInstance)
#undef VULKAN_FUNCTION
};

PFN_vkGetInstanceProcAddr find;
std::atomic<PFN_vkVoidFunction> next[kFunctions];
std::atomic<uint64_t> calls[kFunctions];
std::atomic<int64_t> alive;
std::atomic<VkDevice> last_device;

struct Failure {
  std::mutex mutex;
  std::string function;  // "": any that returns a VkResult
  uint64_t left = 0;     // 1: the next call fails; 0: none
  VkResult code = VK_SUCCESS;
  std::string fired;  // the function that failed
} failure;

// The result that this call has to return; VK_SUCCESS: the driver's. A lost device stays lost.
VkResult Planned(int f) {
  std::lock_guard lock(failure.mutex);
  const bool lost = !failure.fired.empty() && failure.code == VK_ERROR_DEVICE_LOST && failure.left;
  if (lost) return failure.code;
  if (!failure.left || (!failure.function.empty() && failure.function != kNames[f])) return VK_SUCCESS;
  if (failure.left > 1) return failure.left--, VK_SUCCESS;
  failure.fired = kNames[f];
  if (failure.code == VK_ERROR_DEVICE_LOST)
    WaitForQueues(last_device);  // a lost device no longer uses memory
  else
    failure.left = 0;
  return failure.code;
}

bool Begins(int f, const char* with) { return !std::strncmp(kNames[f], with, std::strlen(with)); }
bool Creates(int f) { return f != kCreateInstance && (Begins(f, "vkCreate") || f == kAllocateMemory); }
bool Destroys(int f) { return Begins(f, "vkDestroy") || f == kFreeMemory; }

bool IsObject(VkDevice, const VkAllocationCallbacks*) { return true; }
template <typename Handle>
bool IsObject(VkDevice, Handle object, const VkAllocationCallbacks*) {
  return object != VK_NULL_HANDLE;
}
template <typename... A>
bool IsObject(A...) {
  return false;
}

template <int f, typename R, typename... A>
struct Wrap {
  static R VKAPI_CALL Call(A... a) {
    calls[f]++;
    auto forward = reinterpret_cast<R(VKAPI_PTR*)(A...)>(next[f].load());
    if (Destroys(f) && IsObject(a...)) alive--;
    if constexpr (f == kDestroyDevice) last_device = nullptr;
    if constexpr (std::is_same_v<R, VkResult>) {
      if (VkResult planned = Planned(f)) return planned;
      const VkResult result = forward(a...);
      if (result == VK_SUCCESS && Creates(f)) alive++;
      if constexpr (f == kCreateDevice) last_device = *std::get<3>(std::tuple(a...));
      return result;
    } else {
      return forward(a...);
    }
  }
};

template <int f, typename R, typename... A>
PFN_vkVoidFunction Wrapper(R(VKAPI_PTR*)(A...)) {
  return reinterpret_cast<PFN_vkVoidFunction>(&Wrap<f, R, A...>::Call);
}

template <int f, typename T>
PFN_vkVoidFunction Take(VkInstance instance, T* out) {
  *out = reinterpret_cast<T>(find(instance, kNames[f]));
  if (!*out) return nullptr;
  const PFN_vkVoidFunction disguised = Disguise(kNames[f]);
  next[f] = disguised ? disguised : reinterpret_cast<PFN_vkVoidFunction>(*out);
  return Wrapper<f>(*out);
}

PFN_vkVoidFunction VKAPI_CALL GetInstanceProcAddr(VkInstance instance, const char* name) {
  if (instance)
    below.DeviceWaitIdle = reinterpret_cast<PFN_vkDeviceWaitIdle>(find(instance, "vkDeviceWaitIdle"));
#define VULKAN_FUNCTION(function) \
  if (!std::strcmp(name, "vk" #function)) return Take<k##function>(instance, &below.function);
#include "functions.inc"
  VULKAN_FUNCTION(CreateInstance)
#undef VULKAN_FUNCTION
  return find(instance, name);
}

void PrintCounts() {
  for (int f = 0; f < kFunctions; f++)
    if (calls[f]) std::fprintf(stderr, "driver: %s %ju\n", kNames[f], static_cast<uintmax_t>(calls[f]));
}

void Open() {
  if (find) return;
  if (getenv("DRIVER_COUNT")) std::atexit(PrintCounts);
  find = reinterpret_cast<PFN_vkGetInstanceProcAddr>(
      dlsym(dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL), "vkGetInstanceProcAddr"));
}

}  // namespace
}  // namespace driver

#define EXPORT extern "C" __attribute__((visibility("default")))

// The call of that number from now on fails with the code; 0: none does.
EXPORT void driver_fail(const char* function, uint64_t number, int32_t code) {
  std::lock_guard lock(driver::failure.mutex);
  driver::failure.function = function;
  driver::failure.left = number;
  driver::failure.code = static_cast<VkResult>(code);
  driver::failure.fired.clear();
}

// The function that failed; "": none. Valid until the next driver_fail.
EXPORT const char* driver_fired() {
  std::lock_guard lock(driver::failure.mutex);
  return driver::failure.fired.c_str();
}

EXPORT uint64_t driver_calls(const char* function) {
  for (int f = 0; f < driver::kFunctions; f++)
    if (!std::strcmp(driver::kNames[f], function)) return driver::calls[f];
  return UINT64_MAX;
}

// Objects that were created and are not destroyed.
EXPORT int64_t driver_alive() { return driver::alive; }

EXPORT PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance, const char* name) {
  driver::Open();
  static const bool read = [] {
    const char* text = getenv("DRIVER_FAIL");
    if (!text) return true;
    const std::string all = text;
    const size_t first = all.find(':'), second = all.find(':', first + 1);
    driver_fail(all.substr(0, first).c_str(), std::stoull(all.substr(first + 1)),
                std::stoi(all.substr(second + 1)));
    return true;
  }();
  (void)read;
  return driver::GetInstanceProcAddr(instance, name);
}
