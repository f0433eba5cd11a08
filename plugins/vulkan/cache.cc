// cache.cc: see cache.h.
#include "cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace vulkan {
namespace {

struct Header {
  char magic[8] = {'K', 'E', 'E', 'L', 'V', 'K', 'P', '1'};
  uint32_t vendor = 0, device = 0, driver = 0, reserved = 0;
  uint8_t uuid[VK_UUID_SIZE] = {};
  uint64_t bytes = 0, hash = 0;  // of the data
};
static_assert(std::has_unique_object_representations_v<Header>);

// FNV-1a (Fowler, Noll, Vo 1991): finds damage, not malice.
uint64_t Hash(const std::vector<char>& data) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : data) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  return hash;
}

Header HeaderOf(keel_dev d, const std::vector<char>& data) {
  VkPhysicalDeviceProperties properties;
  vk().GetPhysicalDeviceProperties(d->physical, &properties);
  Header header;
  header.vendor = properties.vendorID;
  header.device = properties.deviceID;
  header.driver = properties.driverVersion;
  std::memcpy(header.uuid, properties.pipelineCacheUUID, sizeof header.uuid);
  header.bytes = data.size();
  header.hash = Hash(data);
  return header;
}

std::string PathOf(keel_dev d) {
  const Header h = HeaderOf(d, {});
  return settings().cache + "/vulkan-" + std::to_string(h.vendor) + "-" + std::to_string(h.device) + ".cache";
}

class File {
 public:
  explicit File(int number) : number_(number) {}
  ~File() {
    if (number_ >= 0) close(number_);
  }
  File(const File&) = delete;
  bool is_open() const { return number_ >= 0; }
  bool Read(void* data, size_t bytes) { return Whole(read, static_cast<char*>(data), bytes); }
  bool Write(const void* data, size_t bytes) { return Whole(write, static_cast<const char*>(data), bytes); }
  uint64_t Bytes() const {  // 0: not a regular file
    struct stat info;
    return fstat(number_, &info) == 0 && S_ISREG(info.st_mode) ? static_cast<uint64_t>(info.st_size) : 0;
  }

 private:
  template <typename Call, typename Byte>
  bool Whole(Call call, Byte* at, size_t bytes) {
    while (bytes) {
      const ssize_t n = call(number_, at, bytes);
      if (n <= 0) return false;
      at += n;
      bytes -= static_cast<size_t>(n);
    }
    return true;
  }
  int number_;
};

bool MakeFolder(const std::string& path) {
  const size_t parent = path.rfind('/');
  if (parent) mkdir(path.substr(0, parent).c_str(), 0700);
  return mkdir(path.c_str(), 0700) == 0 || errno == EEXIST;
}

// Another process may write at the same time: each has a file of its own until it is complete.
void WriteFile(const std::string& path, const Header& header, const std::vector<char>& data) {
  std::string part = path + ".XXXXXX";
  bool whole = false;
  {
    File file(mkostemp(part.data(), O_CLOEXEC));
    if (!file.is_open()) return;
    whole = file.Write(&header, sizeof header) && file.Write(data.data(), data.size());
  }
  if (!whole || rename(part.c_str(), path.c_str())) unlink(part.c_str());
}

std::vector<char> DataOf(keel_dev d) {
  size_t bytes = 0;
  if (vk().GetPipelineCacheData(d->device, d->cache, &bytes, nullptr) || bytes > kMostCacheBytes) return {};
  std::vector<char> data(bytes);
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

std::vector<char> ReadCache(keel_dev d) {
  if (settings().cache.empty()) return {};
  File file(open(PathOf(d).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const uint64_t all = file.is_open() ? file.Bytes() : 0;
  Header header;
  if (all < sizeof header || all > kMostCacheBytes + sizeof header) return {};
  std::vector<char> data(all - sizeof header);
  if (!file.Read(&header, sizeof header) || !file.Read(data.data(), data.size())) return {};
  const Header expected = HeaderOf(d, data);
  if (std::memcmp(&header, &expected, sizeof header) != 0) return {};
  return data;
}

void WriteCache(keel_dev d) noexcept {
  try {
    const uint32_t made = d->pipelines_made.exchange(0);
    if (!made || settings().cache.empty() || d->lost || !MakeFolder(settings().cache)) return;
    const std::vector<char> data = DataOf(d);
    if (!data.empty()) WriteFile(PathOf(d), HeaderOf(d, data), data);
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
