// places.h: a few places where threads leave what a later call can use again: a prepared run, the arguments
// of a call. Taking is one atomic exchange, giving back another; nobody locks or waits. A thread begins at a
// place of its own, so that threads keep out of each other's way and find what they left.
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

// kMisfits: how many things that do not fit a search looks at.
template <typename T, size_t kPlaces, size_t kMisfits = kPlaces>
class Places {
 public:
  Places() = default;
  ~Places() { Clear(); }

  // The first that fits, or null. lost(thing) gets what did not fit and found its place taken meanwhile.
  template <typename Fits, typename Lost>
  std::unique_ptr<T> Take(Fits fits, Lost lost) {
    size_t first = ThreadNumber(), misfits = 0;
    for (size_t i = 0; i < kPlaces && misfits < kMisfits; i++) {
      std::atomic<T*>& place = At(first + i);
      if (i && !place.load(std::memory_order_relaxed)) continue;
      std::unique_ptr<T> found(place.exchange(nullptr, std::memory_order_acq_rel));
      if (!found) continue;
      if (fits(*found)) [[likely]]
        return found;
      misfits++;
      if (!Put(place, found)) lost(std::move(found));
    }
    return nullptr;
  }
  bool HasRoom() const {
    for (const auto& place : places_)
      if (!place.load(std::memory_order_relaxed)) return true;
    return false;
  }
  // Into an empty place if there is one; else into the thread's own, and what was there is given back.
  std::unique_ptr<T> Give(std::unique_ptr<T> thing) {
    size_t first = ThreadNumber();
    for (size_t i = 0; i < kPlaces; i++)
      if (Put(At(first + i), thing)) return nullptr;
    return std::unique_ptr<T>(At(first).exchange(thing.release(), std::memory_order_acq_rel));
  }
  void Clear() {
    for (auto& place : places_) delete place.exchange(nullptr, std::memory_order_acq_rel);
  }

 private:
  std::atomic<T*>& At(size_t i) { return places_[i % kPlaces]; }
  static bool Put(std::atomic<T*>& place, std::unique_ptr<T>& thing) {
    T* empty = nullptr;
    if (!place.compare_exchange_strong(empty, thing.get(), std::memory_order_acq_rel)) return false;
    static_cast<void>(thing.release());
    return true;
  }
  std::atomic<T*> places_[kPlaces] = {};
};

}  // namespace keel
