// hazards.h: which copies and fills of a queue need a barrier between them, by the address ranges that they
// read and write. Launches need none of this: keel_call.depends.
#ifndef KEEL_TESTS_DEVICES_VULKAN_HAZARDS_H
#define KEEL_TESTS_DEVICES_VULKAN_HAZARDS_H
#include <algorithm>
#include <cstdint>
#include <vector>

namespace sketch {

struct Range {
  uint64_t begin, end;
};

class Hazards {
 public:
  // Whether a command that reads and writes these must come after a barrier.
  bool Conflict(Range reads, Range writes) const {
    return Touch(writes_, reads) || Touch(writes_, writes) || Touch(reads_, writes);
  }
  void Add(Range reads, Range writes) {
    reads_.push_back(reads);
    writes_.push_back(writes);
  }
  void Clear() {
    reads_.clear();
    writes_.clear();
  }
  bool Empty() const { return writes_.empty(); }

 private:
  static bool Touch(const std::vector<Range>& some, Range b) {
    return std::any_of(some.begin(), some.end(), [&](Range a) { return a.begin < b.end && b.begin < a.end; });
  }
  std::vector<Range> reads_, writes_;  // since the last barrier
};

}  // namespace sketch
#endif
