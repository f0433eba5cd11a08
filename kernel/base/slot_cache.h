// slot_cache.h: a lock-free cache of a few reusable objects, such as prepared runs and argument lists. Take
// and Put are one atomic exchange each and never wait. Each thread starts its search at its own slot, which
// avoids contention and finds the objects that this thread returned.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace keel {

inline std::atomic<uint32_t> numbered_threads{0};
inline __thread uint32_t thread_number __attribute__((tls_model("initial-exec"))) = 0;
inline size_t ThreadNumber() {
  if (!thread_number) [[unlikely]]
    thread_number = numbered_threads.fetch_add(1, std::memory_order_relaxed) + 1;
  return thread_number;
}

// kMaxMisses: the number of unsuitable objects that one search inspects.
template <typename T, size_t kSlots, size_t kMaxMisses = kSlots>
class SlotCache {
 public:
  SlotCache() = default;
  ~SlotCache() { Clear(); }

  // The first object that fits() accepts, or null. lost() receives a rejected object whose slot another
  // thread refilled during the check.
  template <typename Fits, typename Lost>
  std::unique_ptr<T> Take(Fits fits, Lost lost) {
    size_t first = ThreadNumber(), misses = 0;
    for (size_t i = 0; i < kSlots && misses < kMaxMisses; i++) {
      std::atomic<T*>& slot = At(first + i);
      if (i && !slot.load(std::memory_order_relaxed)) continue;
      std::unique_ptr<T> found(slot.exchange(nullptr, std::memory_order_acq_rel));
      if (!found) continue;
      if (fits(*found)) [[likely]]
        return found;
      misses++;
      if (!PutInto(slot, found)) lost(std::move(found));
    }
    return nullptr;
  }
  bool HasFreeSlot() const {
    for (const auto& slot : slots_)
      if (!slot.load(std::memory_order_relaxed)) return true;
    return false;
  }
  // Into an empty slot if there is one; otherwise replaces the object in the thread's own slot and returns
  // it.
  std::unique_ptr<T> Put(std::unique_ptr<T> object) {
    size_t first = ThreadNumber();
    for (size_t i = 0; i < kSlots; i++)
      if (PutInto(At(first + i), object)) return nullptr;
    return std::unique_ptr<T>(At(first).exchange(object.release(), std::memory_order_acq_rel));
  }
  void Clear() {
    for (auto& slot : slots_) delete slot.exchange(nullptr, std::memory_order_acq_rel);
  }

 private:
  std::atomic<T*>& At(size_t i) { return slots_[i % kSlots]; }
  static bool PutInto(std::atomic<T*>& slot, std::unique_ptr<T>& object) {
    T* empty = nullptr;
    if (!slot.compare_exchange_strong(empty, object.get(), std::memory_order_acq_rel)) return false;
    static_cast<void>(object.release());
    return true;
  }
  std::atomic<T*> slots_[kSlots] = {};
};

}  // namespace keel
