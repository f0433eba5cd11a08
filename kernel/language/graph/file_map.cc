// file_map.cc: a regular file, mapped read-only for as long as `owner` lives. If the file is truncated
// meanwhile, access to the lost pages raises SIGBUS; no check here can prevent that.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

#include "kernel/language/graph/graph.h"

namespace keel {
namespace {

absl::Status CannotRead(const std::string& path, int error) {
  return FileError(error, absl::StrCat("cannot read '", path, "'"));
}

struct Descriptor {
  int fd;
  ~Descriptor() { close(fd); }
};

absl::StatusOr<FileMap> MapDescriptor(const std::string& path, int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0) return CannotRead(path, errno);
  if (!S_ISREG(info.st_mode)) return Invalid("cannot read '", path, "': it is not a regular file");
  FileMap map;
  map.size = static_cast<uint64_t>(info.st_size);
  if (map.size == 0) return Invalid("'", path, "' is empty");
  void* p = mmap(nullptr, map.size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (p == MAP_FAILED) return CannotRead(path, errno);
  map.data = static_cast<const uint8_t*>(p);
  map.owner = std::shared_ptr<const void>(
      p, [size = map.size](const void* q) { munmap(const_cast<void*>(q), size); });
  return map;
}

}  // namespace

void DropPages(const void* mapped, uint64_t bytes) {
  constexpr uintptr_t kPage = 4096;
  uintptr_t begin = (reinterpret_cast<uintptr_t>(mapped) + kPage - 1) / kPage * kPage;
  uintptr_t end = (reinterpret_cast<uintptr_t>(mapped) + bytes) / kPage * kPage;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

absl::StatusOr<FileMap> MapFile(const std::string& path) {
  if (path.find('\0') != std::string::npos) return Invalid("a path contains a zero byte");
  // Opening a fifo without a writer must not block.
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return CannotRead(path, errno);
  Descriptor closed{fd};
  return MapDescriptor(path, fd);
}

}  // namespace keel
