// pending.h: runs in flight, as variables see them. kernel/runtime/device/outcome.h has the only
// implementation.
#pragma once

#include <memory>
#include <vector>

#include "kernel/base/status.h"

namespace keel {

// A run whose launches may still fail on their data. A failure is reported once a caller of the library got
// its error.
class PendingRun {
 public:
  enum class State { kGood, kPending, kFailed, kReported };
  virtual ~PendingRun() = default;
  virtual State state() = 0;        // does not wait
  virtual absl::Status Wait() = 0;  // until it is not pending; the error of the wait, not of the run
  virtual absl::Status Get() = 0;   // waits; the error of the run, which the caller reports
};

// In program order.
class PendingRuns {
 public:
  void Add(const std::shared_ptr<PendingRun>& run);  // null, or known to be good: nothing to add
  void Add(const PendingRuns& other);
  // The first run in this state or a later one; null: none.
  std::shared_ptr<PendingRun> First(PendingRun::State least) const;
  // Waits; the error of the first run that failed.
  absl::Status Get() const;

 private:
  std::vector<std::shared_ptr<PendingRun>> runs_;
};

}  // namespace keel
