// weak_table.h: a cache of shared objects by key, which holds weak references.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

namespace keel_cpu {

// Not thread-safe.
template <class T>
class WeakTable {
 public:
  // Returns the live object of the key, or creates it with `make`, which returns a std::shared_ptr<const T>
  // (may be null).
  template <class Make>
  std::shared_ptr<const T> Get(const std::string& key, const Make& make) {
    std::weak_ptr<const T>& entry = known_[key];
    std::shared_ptr<const T> found = entry.lock();
    if (!found) {
      entry = found = make();
      Sweep();
    }
    return found;
  }

 private:
  // Removes expired entries; the threshold doubles with the size, so the cost is amortised.
  void Sweep() {
    if (known_.size() < sweep_at_) return;
    std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = 64 + 2 * known_.size();
  }
  std::unordered_map<std::string, std::weak_ptr<const T>> known_;
  size_t sweep_at_ = 64;
};

}  // namespace keel_cpu
