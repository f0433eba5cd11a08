// inject.cc: the interposed calls. They are defined in the test program, so every library in the process
// calls them; each checks Fails() and calls the C library.
#include "tests/faults/inject.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <filesystem>

namespace keel::test {
namespace {

struct Armed {
  Kind kind = Kind::kNone;
  Mode mode = Mode::kOnce;
  int64_t left = 0;
  int error = 0;
  const char* failed = nullptr;
};
thread_local Armed armed;
thread_local int spared = 0;
std::atomic<int64_t> live_blocks{0};

bool Fails(Kind kind, const char* call) {
  Armed& a = armed;
  if (a.kind != kind || a.left == 0 || spared) return false;
  if (a.left > 1) return a.left--, false;
  if (a.mode == Mode::kOnce) a.left = 0;
  if (!a.failed) a.failed = call;
  errno = kind == Kind::kMemory ? ENOMEM : a.error;
  return true;
}

void* Count(void* block) {
  if (block) live_blocks.fetch_add(1, std::memory_order_relaxed);
  return block;
}

template <typename Function>
Function Next(Function, const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

void Arm(Kind kind, Mode mode, int64_t n, int error) { armed = {kind, mode, n, error, nullptr}; }
bool Disarm() {
  armed.kind = Kind::kNone;
  return armed.failed;
}
void Spare(int more) { spared += more; }
const char* FailedCall() { return armed.failed ? armed.failed : "none"; }
int64_t LiveBlocks() { return live_blocks.load(); }
int64_t OpenFiles() {
  int64_t n = 0;
  for ([[maybe_unused]] const auto& fd : std::filesystem::directory_iterator("/proc/self/fd")) n++;
  return n;
}

}  // namespace keel::test

using keel::test::Count;
using keel::test::Fails;
using keel::test::Kind;
using keel::test::Next;

extern "C" {

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);

void* malloc(size_t n) { return Fails(Kind::kMemory, "malloc") ? nullptr : Count(__libc_malloc(n)); }
void* calloc(size_t n, size_t size) {
  return Fails(Kind::kMemory, "calloc") ? nullptr : Count(__libc_calloc(n, size));
}
void* realloc(void* p, size_t n) {
  if (Fails(Kind::kMemory, "realloc")) return nullptr;
  return p ? __libc_realloc(p, n) : Count(__libc_realloc(p, n));
}
void* aligned_alloc(size_t align, size_t n) {
  return Fails(Kind::kMemory, "aligned_alloc") ? nullptr : Count(__libc_memalign(align, n));
}
void* memalign(size_t align, size_t n) {
  return Fails(Kind::kMemory, "memalign") ? nullptr : Count(__libc_memalign(align, n));
}
int posix_memalign(void** out, size_t align, size_t n) {
  if (Fails(Kind::kMemory, "posix_memalign")) return ENOMEM;
  *out = Count(__libc_memalign(align, n));
  return *out ? 0 : ENOMEM;
}
void free(void* p) {
  if (p) keel::test::live_blocks.fetch_sub(1, std::memory_order_relaxed);
  __libc_free(p);
}

int open(const char* path, int flags, ...) {
  static auto real = Next(&open, "open");
  va_list list;
  va_start(list, flags);
  int mode = flags & O_CREAT ? va_arg(list, int) : 0;
  va_end(list);
  return Fails(Kind::kFile, "open") ? -1 : real(path, flags, mode);
}
ssize_t write(int fd, const void* data, size_t n) {
  static auto real = Next(&write, "write");
  return Fails(Kind::kFile, "write") ? -1 : real(fd, data, n);
}
ssize_t read(int fd, void* data, size_t n) {
  static auto real = Next(&read, "read");
  return Fails(Kind::kFile, "read") ? -1 : real(fd, data, n);
}
ssize_t pread(int fd, void* data, size_t n, off_t at) {
  static auto real = Next(&pread, "pread");
  return Fails(Kind::kFile, "pread") ? -1 : real(fd, data, n, at);
}
int fsync(int fd) {
  static auto real = Next(&fsync, "fsync");
  return Fails(Kind::kFile, "fsync") ? -1 : real(fd);
}
int rename(const char* from, const char* to) {
  static auto real = Next(&rename, "rename");
  return Fails(Kind::kFile, "rename") ? -1 : real(from, to);
}
int close(int fd) {  // closes even when it fails, as on Linux
  static auto real = Next(&close, "close");
  int rc = real(fd);
  return Fails(Kind::kFile, "close") ? -1 : rc;
}
int stat(const char* path, struct stat* out) {
  static auto real = reinterpret_cast<int (*)(const char*, struct stat*)>(dlsym(RTLD_NEXT, "stat"));
  return Fails(Kind::kFile, "stat") ? -1 : real(path, out);
}
int fstat(int fd, struct stat* out) {
  static auto real = Next(&fstat, "fstat");
  return Fails(Kind::kFile, "fstat") ? -1 : real(fd, out);
}
void* mmap(void* at, size_t n, int protection, int flags, int fd, off_t offset) {
  static auto real = Next(&mmap, "mmap");
  return fd >= 0 && Fails(Kind::kFile, "mmap") ? MAP_FAILED : real(at, n, protection, flags, fd, offset);
}
DIR* opendir(const char* path) {
  static auto real = Next(&opendir, "opendir");
  return Fails(Kind::kFile, "opendir") ? nullptr : real(path);
}
}
