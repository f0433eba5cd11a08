// timeline.h: a trace of the process's activity in Chrome's trace format (chrome://tracing, Perfetto). Off
// until Begin (api/timeline.cc); while it is off, a check costs one load.
//
// Each measured operation adds a span to a track. TimedBlock adds a span for its own lifetime to the track
// "planning". Thread-safe; each thread has its own tracks.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernel/base/json.h"
#include "kernel/base/status.h"

namespace keel {

int64_t Now();  // nanoseconds of the steady clock

class Timeline {
 public:
  enum Detail : int { kOff, kPlanning, kRuns };  // each includes the previous one
  struct Span {
    std::string_view name, kind;
    int64_t begin = 0, end = 0;
    std::string_view args = "{}";  // a JSON object
  };
  static bool On() { return detail_.load(std::memory_order_relaxed) != kOff; }
  static bool ShowsRuns() { return detail_.load(std::memory_order_relaxed) == kRuns; }
  static absl::Status Begin(const std::string& path, Detail);  // one at a time
  static absl::Status End();                                   // completes the file; no-op while off
  static void Add(std::string_view track, const Span& span);   // drops the span if memory runs out

 private:
  static std::atomic<int> detail_;
};

class TimedBlock {
 public:
  TimedBlock(const char* kind, std::string_view name);
  ~TimedBlock();
  TimedBlock(const TimedBlock&) = delete;
  TimedBlock& operator=(const TimedBlock&) = delete;
  double Ms() const;  // so far; also while the timeline is off
  void Note(std::string_view key, std::string_view text);
  void Note(std::string_view key, uint64_t number);

 private:
  const char* kind_;  // null: the timeline was off at construction
  std::string name_;
  int64_t begin_;
  Json args_;
};

}  // namespace keel
