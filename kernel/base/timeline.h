// timeline.h: what the process did when, as a file that Chrome's tracing and Perfetto show. Off until
// somebody begins it (api/timeline.cc); until then a question whether it is on costs one load.
//
// How to read it: what takes time leaves a span on a track. TimedBlock leaves one for its own life, on the
// track of planning. Any thread; each has tracks of its own.
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
  enum Detail : int { kOff, kPlanning, kRuns };  // each with what the one before it shows
  struct Span {
    std::string_view name, kind;
    int64_t begin = 0, end = 0;
    std::string_view args = "{}";  // a JSON object
  };
  static bool On() { return detail_.load(std::memory_order_relaxed) != kOff; }
  static bool ShowsRuns() { return detail_.load(std::memory_order_relaxed) == kRuns; }
  static absl::Status Begin(const std::string& path, Detail);  // one at a time
  static absl::Status End();                                   // the file is whole then; off: nothing happens
  static void Add(std::string_view track, const Span& span);   // without memory for it: nothing

 private:
  static std::atomic<int> detail_;
};

class TimedBlock {
 public:
  TimedBlock(const char* kind, std::string_view name);
  ~TimedBlock();
  TimedBlock(const TimedBlock&) = delete;
  TimedBlock& operator=(const TimedBlock&) = delete;
  double Ms() const;  // so far, also where nothing is asked for
  void Note(std::string_view key, std::string_view text);
  void Note(std::string_view key, uint64_t number);

 private:
  const char* kind_;  // null: nothing is asked for
  std::string name_;
  int64_t begin_;
  Json args_;
};

}  // namespace keel
