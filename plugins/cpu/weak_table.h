// weak_table.h: things that are made once for each key, and are there for as long as somebody keeps them.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

namespace keel_cpu {

// For one thread at a time.
template <class T>
class WeakTable {
 public:
  // What is there for the key, or what `make` gives: a std::shared_ptr<const T>, which may be null.
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
  // What nobody keeps any more is forgotten now and then.
  void Sweep() {
    if (known_.size() < sweep_at_) return;
    std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = 64 + 2 * known_.size();
  }
  std::unordered_map<std::string, std::weak_ptr<const T>> known_;
  size_t sweep_at_ = 64;
};

}  // namespace keel_cpu
