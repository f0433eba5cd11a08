// disk_cache.h: compiled code in files, one for each key, in a folder that only the user may read. A file has
// a header with the hashes of its key and of its content; a damaged or foreign file is ignored and later
// replaced. Processes may share the folder: a file is written under another name and renamed. No errors: a
// cache only saves time. Thread-safe. POSIX.
#ifndef KEEL_PLUGIN_DISK_CACHE_H
#define KEEL_PLUGIN_DISK_CACHE_H
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace keel::plugin {

// The user's folder for caches of Keel, or "": only absolute paths count, as in the XDG base directory
// specification.
inline std::string cache_folder() {
  const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
  if (cache && cache[0] == '/') return std::string(cache) + "/keel";
  return home && home[0] == '/' ? std::string(home) + "/.cache/keel" : "";
}

class DiskCache {
 public:
  // folder "": nothing is kept. most_bytes: of all files; the oldest ones are removed.
  DiskCache(std::string folder, uint64_t most_bytes) : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  // The content for a key: all that the content depends on, such as the source and the driver's version.
  std::optional<std::string> Find(std::string_view key) const {
    if (folder_.empty()) return std::nullopt;
    const File file(open(PathOf(key).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // it may be a pipe
    const uint64_t bytes = file.Bytes();
    Header header;
    if (bytes < sizeof header || bytes > most_bytes_ || !file.Read(&header, sizeof header))
      return std::nullopt;
    std::string content(bytes - sizeof header, '\0');
    if (!file.Read(content.data(), content.size())) return std::nullopt;
    const Header expected = HeaderOf(key, content);
    if (std::memcmp(&header, &expected, sizeof header) != 0) return std::nullopt;
    return content;
  }

  // Whether the content was written.
  bool Keep(std::string_view key, std::string_view content) const {
    if (folder_.empty() || content.size() + sizeof(Header) > most_bytes_ || !MakeFolder()) return false;
    std::string part = folder_ + "/partXXXXXX";
    const Header header = HeaderOf(key, content);
    bool whole = false;
    {
      const File file(mkostemp(part.data(), O_CLOEXEC));
      if (!file.is_open()) return false;
      whole = file.Write(&header, sizeof header) && file.Write(content.data(), content.size());
    }
    if (whole && std::rename(part.c_str(), PathOf(key).c_str()) == 0) return RemoveOldest(), true;
    unlink(part.c_str());
    return false;
  }

  // FNV-1a (Fowler, Noll, Vo 1991): finds damage, not malice.
  static uint64_t Hash(std::string_view data) {
    uint64_t hash = 0xcbf29ce484222325;
    for (const char byte : data) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
    return hash;
  }

 private:
  class File {
   public:
    explicit File(int number) : number_(number) {}
    ~File() {
      if (is_open()) close(number_);
    }
    File(const File&) = delete;
    bool is_open() const { return number_ >= 0; }
    uint64_t Bytes() const {  // 0: not open, or not a regular file
      struct stat info;
      return fstat(number_, &info) == 0 && S_ISREG(info.st_mode) ? static_cast<uint64_t>(info.st_size) : 0;
    }
    bool Read(void* data, size_t bytes) const { return Whole(read, static_cast<char*>(data), bytes); }
    bool Write(const void* data, size_t bytes) const {
      return Whole(write, static_cast<const char*>(data), bytes);
    }

   private:
    template <typename Call, typename Byte>
    bool Whole(Call call, Byte* at, size_t bytes) const {
      while (bytes != 0) {
        const ssize_t n = call(number_, at, bytes);
        if (n <= 0) return false;
        at += n, bytes -= static_cast<size_t>(n);
      }
      return true;
    }
    int number_;
  };
  struct Header {
    char magic[8] = {'K', 'E', 'E', 'L', 'C', 'O', 'D', '1'};
    uint64_t key = 0, key_bytes = 0, content = 0, bytes = 0;  // hash and size of each
  };

  static Header HeaderOf(std::string_view key, std::string_view content) {
    Header header;
    header.key = Hash(key), header.key_bytes = key.size();
    header.content = Hash(content), header.bytes = content.size();
    return header;
  }
  std::string PathOf(std::string_view key) const {
    char name[24];
    std::snprintf(name, sizeof name, "%016llx.code", static_cast<unsigned long long>(Hash(key)));
    return folder_ + "/" + name;
  }
  bool MakeFolder() const {
    const size_t parent = folder_.rfind('/');
    if (parent != 0 && parent != std::string::npos) mkdir(folder_.substr(0, parent).c_str(), 0700);
    return mkdir(folder_.c_str(), 0700) == 0 || errno == EEXIST;
  }

  // Another process may remove or replace files meanwhile: all errors are ignored.
  void RemoveOldest() const {
    struct Entry {
      std::filesystem::file_time_type time;
      uint64_t bytes;
      std::filesystem::path path;
    };
    std::vector<Entry> all;
    uint64_t bytes = 0;
    std::error_code error;
    for (const auto& file : std::filesystem::directory_iterator(folder_, error)) {
      if (file.path().extension() != ".code") continue;
      const uint64_t size = file.file_size(error);
      if (error) continue;
      all.push_back({file.last_write_time(error), size, file.path()});
      bytes += size;
    }
    std::sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) { return a.time < b.time; });
    for (size_t i = 0; i < all.size() && bytes > most_bytes_; bytes -= all[i++].bytes)
      std::filesystem::remove(all[i].path, error);
  }

  std::string folder_;
  uint64_t most_bytes_;
};

}  // namespace keel::plugin
#endif
