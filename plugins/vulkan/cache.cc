// cache.cc: see cache.h.
#include "cache.h"

#include <unistd.h>

#include <cstdlib>

#include "sdk/plugin/disk_cache.h"

namespace vulkan {
namespace {

keel::plugin::DiskCache Files() { return {settings().cache, kMostCacheBytes}; }

// The driver's identity.
std::string KeyOf(keel_dev d) {
  VkPhysicalDeviceProperties properties;
  vk().GetPhysicalDeviceProperties(d->physical, &properties);
  std::string key = "vulkan pipelines";
  for (uint32_t number : {properties.vendorID, properties.deviceID, properties.driverVersion})
    key += " " + std::to_string(number);
  key.append(reinterpret_cast<const char*>(properties.pipelineCacheUUID), VK_UUID_SIZE);
  return key;
}

std::string DataOf(keel_dev d) {
  size_t bytes = 0;
  if (vk().GetPipelineCacheData(d->device, d->cache, &bytes, nullptr) || bytes > kMostCacheBytes) return {};
  std::string data(bytes, '\0');
  if (vk().GetPipelineCacheData(d->device, d->cache, &bytes, data.data())) return {};
  data.resize(bytes);
  return data;
}

struct Open {
  std::mutex mutex;
  std::vector<keel_dev> devices;
  const pid_t process = getpid();  // drivers do not work in a forked child
};
Open& open_devices() {
  static Open& all = *new Open;
  return all;
}

void WriteAll() {
  Open& open = open_devices();
  if (getpid() != open.process) return;
  std::lock_guard lock(open.mutex);
  for (keel_dev d : open.devices) WriteCache(d);
  open.devices.clear();
}

}  // namespace

std::string ReadCache(keel_dev d) { return Files().Find(KeyOf(d)).value_or(""); }

void WriteCache(keel_dev d) noexcept {
  try {
    if (!d->pipelines_made.exchange(0) || d->lost) return;
    const std::string data = DataOf(d);
    if (!data.empty()) Files().Keep(KeyOf(d), data);
  } catch (...) {
  }
}

void WriteCacheAtExit(keel_dev d) {
  static const int registered = std::atexit(WriteAll);
  (void)registered;
  std::lock_guard lock(open_devices().mutex);
  open_devices().devices.push_back(d);
}

void ForgetCacheAtExit(keel_dev d) {
  std::lock_guard lock(open_devices().mutex);
  std::erase(open_devices().devices, d);
}

}  // namespace vulkan
