// file_save.cc: writes a module atomically: to a temporary file in the same folder, which is renamed when it
// is complete and synced.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

#include <atomic>

#include "kernel/language/graph/file_format.h"

namespace keel {
namespace {

constexpr size_t kWriteChunk = 64 << 20;

absl::Status SystemError(std::string_view doing, const std::string& path, int error) {
  return FileError(error, absl::StrCat("cannot ", std::string(doing), " '", path, "'"));
}

// A file that is removed unless it is committed.
class TempFile {
 public:
  explicit TempFile(std::string path) : path_(std::move(path)) {}
  ~TempFile() {
    if (fd_ >= 0) close(fd_);
    if (made_) unlink(temp_.c_str());
  }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;

  absl::Status Open();
  absl::Status Write(const void* data, uint64_t size);
  absl::Status PadTo(uint64_t offset);
  absl::Status Commit();

 private:
  absl::Status Failed(int error);

  std::string path_, temp_;
  int fd_ = -1;
  bool made_ = false;
  uint64_t written_ = 0;
};

absl::Status TempFile::Open() {
  struct stat info;
  if (stat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return Error(absl::StatusCode::kFailedPrecondition, "cannot save to '", path_,
                 "': it exists and is not a regular file");
  static std::atomic<uint32_t> counter{0};
  for (int tries = 0; tries < 100; tries++) {
    temp_ = absl::StrCat(path_, ".tmp.", getpid(), ".", counter++);
    fd_ = open(temp_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ >= 0) return made_ = true, absl::OkStatus();
    if (errno != EEXIST) break;
  }
  return SystemError("save to", path_, errno);
}

absl::Status TempFile::Failed(int error) {
  absl::Status s = SystemError("save to", path_, error);
  return absl::Status(
      s.code(), absl::StrCat(s.message(), " (after ", written_, " bytes; the previous file is unchanged)"));
}

absl::Status TempFile::Write(const void* data, uint64_t size) {
  auto p = static_cast<const char*>(data);
  while (size > 0) {
    ssize_t n = write(fd_, p, std::min<uint64_t>(size, kWriteChunk));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Failed(n < 0 ? errno : ENOSPC);
    p += n;
    size -= static_cast<uint64_t>(n);
    written_ += static_cast<uint64_t>(n);
  }
  return absl::OkStatus();
}

absl::Status TempFile::PadTo(uint64_t offset) {
  static char kZeros[kSegmentAlign];  // zero-initialized, not const: so it is in .bss and takes no space in
                                      // the library
  return offset > written_ ? Write(kZeros, offset - written_) : absl::OkStatus();
}

absl::Status TempFile::Commit() {
  if (fsync(fd_) != 0) return Failed(errno);
  int closed = close(std::exchange(fd_, -1));
  if (closed != 0 && errno != EINTR) return Failed(errno);
  if (rename(temp_.c_str(), path_.c_str()) != 0) return Failed(errno);
  made_ = false;
  size_t slash = path_.rfind('/');
  std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  int dir = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // If the folder is not readable, the file is complete, but not yet durable.
  if (dir < 0) return absl::OkStatus();
  int failed = fsync(dir) != 0 && errno != EINVAL ? errno : 0;
  close(dir);
  return failed ? SystemError("sync the folder of", path_, failed) : absl::OkStatus();
}

}  // namespace

absl::Status SaveFile(const Module& m, const std::string& path) {
  ASSIGN_OR_RETURN(EncodedModule encoded, EncodeModule(m));
  TempFile file(path);
  RETURN_IF_ERROR(file.Open());
  RETURN_IF_ERROR(file.Write(encoded.structure.data(), encoded.structure.size()));
  for (size_t i = 0; i < m.constants.size(); i++) {
    if (m.constants[i].bytes == 0) continue;
    RETURN_IF_ERROR(file.PadTo(encoded.segment_offset + encoded.data_offsets[i]));
    RETURN_IF_ERROR(file.Write(m.constants[i].data, m.constants[i].bytes));
  }
  for (size_t i = 0; i < encoded.variables.size(); i++) {
    if (encoded.variables[i]->bytes() == 0) continue;
    RETURN_IF_ERROR(file.PadTo(encoded.segment_offset + encoded.variable_offsets[i]));
    RETURN_IF_ERROR(file.Write(encoded.variables[i]->data(), encoded.variables[i]->bytes()));
  }
  return file.Commit();
}

}  // namespace keel
