// disk_cache.h: compiled code in files, one for each key, in a folder of the plugin's own. A file has a
// header with the hashes of its key and of its content; a damaged or foreign file is ignored and later
// replaced. Processes may share the folder: a file is written under another name and renamed. No errors: a
// cache only saves time. Thread-safe. POSIX.
#ifndef KEEL_PLUGIN_DISK_CACHE_H
#define KEEL_PLUGIN_DISK_CACHE_H
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace keel::plugin {

class DiskCache {
 public:
  // folder "": nothing is kept. most_bytes: of all files; the oldest ones are removed.
  DiskCache(std::string folder, uint64_t most_bytes) : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  // The content for a key: all that the content depends on, such as the source and the driver's version.
  std::optional<std::string> Find(std::string_view key) const {
    if (folder_.empty()) return std::nullopt;
    std::ifstream file(PathOf(key), std::ios::binary);
    Header header;
    if (!file.read(reinterpret_cast<char*>(&header), sizeof header)) return std::nullopt;
    if (header.bytes > most_bytes_) return std::nullopt;
    std::string content(header.bytes, '\0');
    file.read(content.data(), static_cast<std::streamsize>(content.size()));
    const Header expected = HeaderOf(key, content);
    const bool whole = file.gcount() == static_cast<std::streamsize>(content.size()) &&
                       std::memcmp(&header, &expected, sizeof header) == 0;
    return whole ? std::optional(std::move(content)) : std::nullopt;
  }

  // Whether the content was written.
  bool Keep(std::string_view key, std::string_view content) const {
    std::error_code error;
    if (folder_.empty() || content.size() + sizeof(Header) > most_bytes_) return false;
    std::filesystem::create_directories(folder_, error);
    const Header header = HeaderOf(key, content);
    std::string part = folder_ + "/partXXXXXX";
    const int file = mkstemp(part.data());
    if (file < 0) return false;
    const bool whole = Write(file, &header, sizeof header) && Write(file, content.data(), content.size());
    close(file);
    if (whole && std::rename(part.c_str(), PathOf(key).c_str()) == 0) return RemoveOldest(), true;
    std::filesystem::remove(part, error);
    return false;
  }

 private:
  struct Header {
    char magic[8] = {'K', 'E', 'E', 'L', 'C', 'O', 'D', '1'};
    uint64_t key = 0, key_bytes = 0, content = 0, bytes = 0;  // hash and size of each
  };

  // FNV-1a (Fowler, Noll, Vo 1991): finds damage, not malice.
  static uint64_t Hash(std::string_view data) {
    uint64_t hash = 0xcbf29ce484222325;
    for (const char byte : data) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
    return hash;
  }
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
  static bool Write(int file, const void* data, size_t bytes) {
    const char* at = static_cast<const char*>(data);
    while (bytes != 0) {
      const ssize_t n = write(file, at, bytes);
      if (n <= 0) return false;
      at += n, bytes -= static_cast<size_t>(n);
    }
    return true;
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
