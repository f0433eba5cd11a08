// hazards.h: which commands need a barrier, from the address ranges that they read and write.
// keel_call.depends has the same answer for launches without ranges (keel/keel_impl.h); this is for commands
// of a plugin's own, and to verify barriers. Not thread-safe.
#ifndef KEEL_PLUGIN_HAZARDS_H
#define KEEL_PLUGIN_HAZARDS_H
#include <cstdint>
#include <vector>

namespace keel::plugin {

struct Range {
  uint64_t begin, end;  // device addresses; end: behind the last byte
};

// Ranges that commands since the last barrier read and wrote.
class Ranges {
 public:
  // A command with these ranges conflicts with an earlier one: it reads or writes what that one wrote, or
  // writes what that one read.
  bool Conflicts(const std::vector<Range>& reads, const std::vector<Range>& writes) const {
    return Overlap(writes_, reads) || Overlap(writes_, writes) || Overlap(reads_, writes);
  }
  void Add(const std::vector<Range>& reads, const std::vector<Range>& writes) {
    reads_.insert(reads_.end(), reads.begin(), reads.end());
    writes_.insert(writes_.end(), writes.begin(), writes.end());
  }
  void Clear() {  // after a barrier
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

}  // namespace keel::plugin
#endif
