// memory.cc: see memory.h. Code regions are mapped twice, writable and executable, so no page is ever both,
// and publishing code never changes the protection of pages that other threads execute. A forked child shares
// the regions: it executes existing code and puts its own code into new regions.
#include "plugins/cpu/jit/memory.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "plugins/cpu/parallel/parallel.h"
#include "plugins/cpu/weak_table.h"

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace keel_cpu {
namespace {

#if defined(__linux__)

class Region {
 public:
  explicit Region(size_t bytes) : bytes_(bytes) {
    const int file = memfd_create("keel-code", MFD_CLOEXEC);
    if (file < 0) return;
    if (ftruncate(file, static_cast<off_t>(bytes)) == 0) {
      write_ = Map(file, PROT_READ | PROT_WRITE);
      run_ = Map(file, PROT_READ | PROT_EXEC);
    }
    close(file);
  }
  ~Region() {
    if (write_) munmap(write_, bytes_);
    if (run_) munmap(run_, bytes_);
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  bool ok() const { return write_ && run_; }
  // Null: the code does not fit, or the region was made by another process.
  const void* Add(const std::string& code) {
    constexpr size_t kLine = 64;
    if (!ok() || bytes_ - used_ < code.size() || made_by_ != getpid()) return nullptr;
    std::memcpy(write_ + used_, code.data(), code.size());
    const void* at = run_ + used_;
    used_ = std::min(bytes_, (used_ + code.size() + kLine - 1) / kLine * kLine);
    return at;
  }

 private:
  char* Map(int file, int rights) {
    void* p = mmap(nullptr, bytes_, rights, MAP_SHARED, file, 0);
    return p == MAP_FAILED ? nullptr : static_cast<char*>(p);
  }
  size_t bytes_, used_ = 0;
  const pid_t made_by_ = getpid();
  char *write_ = nullptr, *run_ = nullptr;
};

#else

struct Region {
  explicit Region(size_t) {}
  bool ok() const { return false; }
  const void* Add(const std::string&) { return nullptr; }
};

#endif

struct Store {
  std::timed_mutex mutex;
  std::shared_ptr<Region> last;
  WeakTable<void> known;

  std::shared_ptr<const void> Add(const std::string& code) {
    constexpr size_t kRegion = 256 * 1024;
    const void* at = last ? last->Add(code) : nullptr;
    if (!at) {
      last = std::make_shared<Region>(std::max(kRegion, code.size()));
      at = last->Add(code);
    }
    return at ? std::shared_ptr<const void>(last, at) : nullptr;
  }
};

// Publishes in a region of its own.
std::shared_ptr<const void> Alone(const std::string& code) {
  auto region = std::make_shared<Region>(code.size());
  const void* at = region->Add(code);
  return at ? std::shared_ptr<const void>(std::move(region), at) : nullptr;
}

}  // namespace

std::shared_ptr<const void> PublishCode(const std::string& code) {
  static Store* store = new Store;  // never destroyed: plans may outlive static destruction
  const std::unique_lock lock(store->mutex, kPatience);
  if (!lock) return Alone(code);
  return store->known.Get(code, [&] { return store->Add(code); });
}

}  // namespace keel_cpu
