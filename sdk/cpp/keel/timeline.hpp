// timeline.hpp: what the process does when, in a file for Chrome's tracing and Perfetto.
//
//   keel::Timeline timeline("out.json");   // until its end: plans, passes, traces and retraces, runs
//   { keel::TimedBlock epoch("epoch 3"); ... }
#ifndef KEEL_TIMELINE_HPP
#define KEEL_TIMELINE_HPP
#include <string>
#include <utility>

#include "error.hpp"

namespace keel {

/// From its making to its end the file is written; one at a time in a process (Error KEEL_PRECONDITION). What
/// it shows is said in keel.h; without runs it leaves runs, eager calls and launches out.
class Timeline {
 public:
  explicit Timeline(const std::string& path, bool runs = true) {
    call(keel_timeline_begin, path.c_str(), runs ? 1 : 0);
  }
  ~Timeline() {
    if (!ended_) keel_timeline_end(nullptr);
  }
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;
  /// As its end, but throws where the file could not be written.
  void end() {
    ended_ = true;
    call(keel_timeline_end);
  }

 private:
  bool ended_ = false;
};

/// A span of the program's own, for as long as it lives, on the track of that name; nothing where no timeline
/// is.
class TimedBlock {
 public:
  explicit TimedBlock(std::string name, std::string track = "program")
      : name_(std::move(name)), track_(std::move(track)), begin_(keel_timeline_now()) {}
  ~TimedBlock() {
    keel_timeline_span(track_.c_str(), name_.c_str(), "program", begin_, keel_timeline_now(), nullptr);
  }
  TimedBlock(const TimedBlock&) = delete;
  TimedBlock& operator=(const TimedBlock&) = delete;

 private:
  const std::string name_, track_;
  const int64_t begin_;
};

}  // namespace keel
#endif
