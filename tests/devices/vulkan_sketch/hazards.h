// hazards.h: which commands of a queue need a barrier between them, by the address ranges that they read and
// write. Keel's memory plan lets values share addresses, so ranges are all that a device has to go by.
#ifndef KEEL_TESTS_DEVICES_VULKAN_HAZARDS_H
#define KEEL_TESTS_DEVICES_VULKAN_HAZARDS_H
#include <algorithm>
#include <cstdint>
#include <vector>

namespace sketch {

struct Range {
  uint64_t begin, end;
};
using Ranges = std::vector<Range>;

class Hazards {
 public:
  // Whether a command that reads and writes these must come after a barrier; notes them.
  bool Conflict(const Ranges& reads, const Ranges& writes) {
    bool conflicts = Touch(writes_, reads) || Touch(writes_, writes) || Touch(reads_, writes);
    if (conflicts) Clear();
    reads_.insert(reads_.end(), reads.begin(), reads.end());
    writes_.insert(writes_.end(), writes.begin(), writes.end());
    return conflicts;
  }
  void Clear() {
    reads_.clear();
    writes_.clear();
  }

 private:
  static bool Touch(const Ranges& some, const Ranges& others) {
    return std::any_of(some.begin(), some.end(), [&](Range a) {
      return std::any_of(others.begin(), others.end(),
                         [&](Range b) { return a.begin < b.end && b.begin < a.end; });
    });
  }
  Ranges reads_, writes_;  // since the last barrier
};

}  // namespace sketch
#endif
