// verifier.h: checks barriers independently of keel_call.depends, from the address ranges of operands. For
// tests (KEEL_VULKAN_VERIFY).
#ifndef KEEL_PLUGINS_VULKAN_VERIFIER_H
#define KEEL_PLUGINS_VULKAN_VERIFIER_H
#include <algorithm>
#include <cstdint>
#include <vector>

namespace vulkan {

struct Range {
  uint64_t begin, end;
};

// Ranges that commands since the last barrier read and wrote.
class Ranges {
 public:
  // A command with these ranges conflicts with an earlier one.
  bool Conflicts(const std::vector<Range>& reads, const std::vector<Range>& writes) const {
    return Overlap(writes_, reads) || Overlap(writes_, writes) || Overlap(reads_, writes);
  }
  void Add(const std::vector<Range>& reads, const std::vector<Range>& writes) {
    reads_.insert(reads_.end(), reads.begin(), reads.end());
    writes_.insert(writes_.end(), writes.begin(), writes.end());
  }
  void Clear() {
    reads_.clear();
    writes_.clear();
  }
  bool empty() const { return writes_.empty() && reads_.empty(); }

 private:
  static bool Overlap(const std::vector<Range>& some, const std::vector<Range>& others) {
    for (const Range& a : some)
      for (const Range& b : others)
        if (a.begin < b.end && b.begin < a.end) return true;
    return false;
  }
  std::vector<Range> reads_, writes_;
};

}  // namespace vulkan
#endif
