// bytes.cc: see bytes.h.
#include "cli/data/bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "cli/exit.h"

namespace cli {
namespace {

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd > 2) close(fd);
  }
};

[[noreturn]] void fail_errno(const std::string& what, const std::string& path) {
  throw Fail(kBadFile, what + " " + path + ": " + std::strerror(errno));
}

}  // namespace

std::string read_file(const std::string& path) {
  static bool read_stdin = false;
  if (path == "-" && std::exchange(read_stdin, true))
    throw Fail(kUsage, "stdin cannot be read twice", "use - once only");
  Descriptor d{path == "-" ? 0 : open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat st;
  if (d.fd < 0 || fstat(d.fd, &st) != 0) fail_errno("cannot read", path);
  if (S_ISDIR(st.st_mode)) throw Fail(kBadFile, path + " is a folder, expected a file");
  std::string out;
  size_t used = 0;
  out.resize(S_ISREG(st.st_mode) ? static_cast<size_t>(st.st_size) + 1 : 65536);
  for (;;) {
    if (used == out.size()) out.resize(out.size() * 2);
    ssize_t n = read(d.fd, out.data() + used, out.size() - used);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_errno("cannot read", path);
    if (n == 0) break;
    used += static_cast<size_t>(n);
  }
  out.resize(used);
  return out;
}

std::string file_in_memory(const char* name, std::string_view bytes) {
  const int fd = memfd_create(name, MFD_CLOEXEC);
  while (fd >= 0 && !bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno != EINTR) break;
    bytes.remove_prefix(static_cast<size_t>(std::max<ssize_t>(n, 0)));
  }
  if (fd < 0 || !bytes.empty()) fail_errno("cannot store the contents of", name);
  return "/proc/self/fd/" + std::to_string(fd);
}

void write_file(const std::string& path, std::string_view bytes) {
  // Writes a temporary file and renames it, so that a full disk leaves no partial file; pipes and devices are
  // written directly.
  struct stat st;
  bool direct = stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode);
  std::string temporary = direct ? path : path + ".tmp" + std::to_string(getpid());
  Descriptor d{open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
  if (d.fd < 0) fail_errno("cannot write", path);
  while (!bytes.empty()) {
    ssize_t n = write(d.fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      int reason = errno;
      if (!direct) unlink(temporary.c_str());
      errno = reason;
      fail_errno("cannot write", path);
    }
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  if (!direct && rename(temporary.c_str(), path.c_str()) != 0) fail_errno("cannot write", path);
}

bool is_file(const std::string& path) {
  struct stat st;
  return stat(path.c_str(), &st) == 0 && !S_ISDIR(st.st_mode);
}

uint64_t file_size(const std::string& path) {
  struct stat st;
  return stat(path.c_str(), &st) == 0 ? static_cast<uint64_t>(st.st_size) : 0;
}

uint64_t file_number(const std::string& path) {
  struct stat st;
  return stat(path.c_str(), &st) == 0 ? static_cast<uint64_t>(st.st_ino) : 0;
}

}  // namespace cli
