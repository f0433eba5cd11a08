// temp_file.cc: see temp_file.h.
#include "kernel/language/graph/temp_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

#include <algorithm>
#include <atomic>

#include "kernel/language/graph/file_format.h"

namespace keel {
namespace {

constexpr size_t kWriteChunk = 64 << 20;

absl::Status SystemError(std::string_view doing, const std::string& path, int error) {
  return FileError(error, absl::StrCat("cannot ", std::string(doing), " '", path, "'"));
}

}  // namespace

TempFile::~TempFile() {
  if (fd_ >= 0) close(fd_);
  if (made_) unlink(temp_.c_str());
}

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
  return absl::Status(s.code(),
                      absl::StrCat(s.message(), " (after ", written_, " bytes; the previous file is ",
                                   removed_old_ ? "removed)" : "unchanged)"));
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

absl::Status TempFile::Close() {
  if (fsync(fd_) != 0) return Failed(errno);
  int closed = close(std::exchange(fd_, -1));
  return closed != 0 && errno != EINTR ? Failed(errno) : absl::OkStatus();
}

absl::Status TempFile::Rename() {
  if (rename(temp_.c_str(), path_.c_str()) != 0) return Failed(errno);
  made_ = false;
  return absl::OkStatus();
}

absl::Status TempFile::RenameData(TempFile& data) {
  RETURN_IF_ERROR(data.Close());
  if (access(data.path_.c_str(), F_OK) == 0) {
    removed_old_ = data.removed_old_ = unlink(path_.c_str()) == 0;
    if (!removed_old_ && errno != ENOENT) return Failed(errno);
  }
  return data.Rename();
}

absl::Status TempFile::Commit(TempFile* data) {
  RETURN_IF_ERROR(Close());
  const bool pair = data && data->made();
  if (pair) RETURN_IF_ERROR(RenameData(*data));
  if (absl::Status renamed = Rename(); !renamed.ok()) {
    if (pair) unlink(data->path_.c_str());
    return renamed;
  }
  size_t slash = path_.rfind('/');
  std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  int dir = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // If the folder is not readable, the file is complete, but not yet durable.
  if (dir < 0) return absl::OkStatus();
  int failed = fsync(dir) != 0 && errno != EINVAL ? errno : 0;
  close(dir);
  return failed ? SystemError("sync the folder of", path_, failed) : absl::OkStatus();
}

}  // namespace keel
