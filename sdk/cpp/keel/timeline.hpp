// timeline.hpp: a trace of the process over time, in a file for Perfetto and Chrome's tracing.
//
//   keel::Timeline timeline("out.json");   // until its end: plans, passes, traces, runs
//   { keel::TimedBlock epoch("epoch 3"); ... }
#ifndef KEEL_TIMELINE_HPP
#define KEEL_TIMELINE_HPP
#include <string>
#include <utility>

#include "error.hpp"

namespace keel {

/// Writes the file during its lifetime; at most one per process (Error KEEL_PRECONDITION). keel.h lists its
/// contents; runs = false omits runs, eager calls and launches.
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
  /// Ends the file; throws Error if it could not be written. The destructor ignores that error.
  void end() {
    ended_ = true;
    call(keel_timeline_end);
  }

 private:
  bool ended_ = false;
};

/// A user-defined span from construction to destruction, on the track of that name; no effect without a
/// timeline.
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
