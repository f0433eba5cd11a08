// recent.h: a cache of the most recently used objects. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <utility>

namespace keel {

template <typename T, size_t kMost>
class Recent {
 public:
  // The first object that fits, null if there is none.
  template <typename Fits>
  T* Find(Fits fits) {
    auto it = std::find_if(objects_.begin(), objects_.end(), fits);
    if (it == objects_.end()) return nullptr;
    objects_.splice(objects_.begin(), objects_, it);
    return &objects_.front();
  }
  // Returns the evicted object, so that the caller can destroy it after it releases a lock.
  T Add(T object) {
    objects_.push_front(std::move(object));
    if (objects_.size() <= kMost) return T();
    T evicted = std::move(objects_.back());
    objects_.pop_back();
    return evicted;
  }
  size_t size() const { return objects_.size(); }

 private:
  std::list<T> objects_;  // most recently used first
};

}  // namespace keel
