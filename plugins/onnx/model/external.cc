// external.cc: finds, checks and maps the file of an external tensor.
//
// The location comes from the model and is not trusted: it must be relative, without "..", and must be in the
// model's folder after symbolic links are resolved. Offsets need no alignment.
#include "plugins/onnx/model/external.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>

#include "plugins/onnx/import/failure.h"

namespace onnx_import {
namespace {

struct ExternalRef {
  std::string location;
  uint64_t offset = 0, length = 0;
  bool has_length = false;
};

uint64_t parse_number(Text digits, const std::string& what, const char* key) {
  uint64_t n = 0;
  bool good = !digits.empty();
  for (char c : digits)
    good = good && c >= '0' && c <= '9' && !__builtin_mul_overflow(n, 10, &n) &&
           !__builtin_add_overflow(n, static_cast<uint64_t>(c - '0'), &n);
  if (!good) refuse(KEEL_INVALID, cat(what, ": external ", key, " '", digits, "' is not a number"));
  return n;
}

ExternalRef parse_reference(const Tensor& t, const std::string& what) {
  ExternalRef p;
  for (const auto& [key, value] : t.external) {
    if (key == "location") p.location = value;
    if (key == "offset") p.offset = parse_number(value, what, "offset");
    if (key == "length") p.length = parse_number(value, what, "length"), p.has_length = true;
  }
  return p;
}

void check_location(const std::string& location, const std::string& what) {
  bool good = !location.empty() && location.front() != '/' && location.find('\0') == std::string::npos &&
              location.find('\\') == std::string::npos;
  for (size_t at = 0; good && at <= location.size();) {
    const size_t end = std::min(location.find('/', at), location.size());
    good = location.compare(at, end - at, "..") != 0;
    at = end + 1;
  }
  if (!good)
    refuse(KEEL_INVALID,
           cat(what, ": external location '", location, "' must be a relative path without '..'"));
}

std::string real_path(const std::string& path, const std::string& what) {
  char buffer[PATH_MAX];
  if (!realpath(path.c_str(), buffer)) refuse(KEEL_NOT_FOUND, cat(what, ": no file '", path, "'"));
  return buffer;
}

std::string resolve(const std::string& location, const keel_source& source, const std::string& what) {
  const std::string model = source.path ? source.path : "";
  if (model.empty())
    refuse(KEEL_PRECONDITION, cat(what, ": data is in the file '", location,
                                  "', but the model came from memory: import it from its file"));
  const size_t slash = model.rfind('/');
  std::string folder = real_path(slash == std::string::npos ? "." : model.substr(0, slash + 1), what);
  const std::string path = real_path(folder + "/" + location, what);
  if (folder != "/") folder += '/';
  if (path.compare(0, folder.size(), folder) != 0)
    refuse(KEEL_INVALID, cat(what, ": external location '", location, "' is outside the model's folder"));
  return path;
}

struct Mapping {
  void* at = nullptr;
  size_t size = 0;
  Mapping(void* a, size_t s) : at(a), size(s) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { munmap(at, size); }
};

// Maps the pages of [offset, offset + size); *bytes is the address of offset.
std::shared_ptr<void> map_range(int file, uint64_t offset, uint64_t size, const uint8_t** bytes) {
  const uint64_t skip = offset % static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  void* at = mmap(nullptr, size + skip, PROT_READ, MAP_PRIVATE, file, static_cast<off_t>(offset - skip));
  if (at == MAP_FAILED) return nullptr;
  auto mapping = std::make_shared<Mapping>(at, size + skip);
  *bytes = static_cast<const uint8_t*>(at) + skip;
  return mapping;
}

struct File {
  int fd;
  explicit File(int f) : fd(f) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd >= 0) close(fd);
  }
};

}  // namespace

void open_external(const Tensor& t, const keel_source& source, uint64_t wanted, Data& d) {
  const std::string what = cat("tensor '", t.name, "'");
  const ExternalRef ref = parse_reference(t, what);
  check_location(ref.location, what);
  const std::string path = resolve(ref.location, source, what);
  File file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status;
  if (file.fd < 0 || fstat(file.fd, &status) != 0 || !S_ISREG(status.st_mode))
    refuse(KEEL_INVALID, cat(what, ": '", path, "' is not a readable file"));
  if (ref.has_length && ref.length != wanted)
    refuse(KEEL_INVALID,
           cat(what, " has external length ", ref.length, "; expected ", wanted, " from its dims"));
  uint64_t end = 0;
  if (__builtin_add_overflow(ref.offset, wanted, &end) || end > static_cast<uint64_t>(status.st_size))
    refuse(KEEL_INVALID, cat(what, " ends at byte ", ref.offset, " + ", wanted, " of '", ref.location,
                             "', which has ", static_cast<int64_t>(status.st_size)));
  d.size = wanted;
  if (wanted == 0) return;
  d.mapping = map_range(file.fd, ref.offset, wanted, &d.bytes);
  if (!d.mapping) refuse(KEEL_OOM, cat(what, ": '", path, "' cannot be mapped into memory"));
}

}  // namespace onnx_import
