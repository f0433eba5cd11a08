// interrupt.h: Ctrl-C while a graph runs: the run ends like a libkeel error, with its exit code and report. A
// second Ctrl-C ends the process. Measuring commands wrap each run in kept_going() and report the
// measurements so far.
#ifndef KEEL_CLI_INTERRUPT_H
#define KEEL_CLI_INTERRUPT_H
#include <keel/session.hpp>

#include "cli/exit.h"

namespace cli {

// During its lifetime SIGINT stops the runs of this context. At most one at a time.
class Interruptible {
 public:
  explicit Interruptible(const keel::Context& context);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
};
bool interrupted();  // whether Ctrl-C was pressed during a lifetime

// Runs f; returns false if Ctrl-C stopped it or was pressed before.
template <class F>
bool kept_going(F f) {
  if (interrupted()) return false;
  try {
    f();
  } catch (const keel::Error& error) {
    if (error.code() != KEEL_CANCELLED || !interrupted()) throw;
    return false;
  }
  return !interrupted();
}
// The exit code after Ctrl-C, with a note on stderr: `done` of `wanted`.
int report_interrupted(const char* command, int64_t done, int64_t wanted, const char* what);

}  // namespace cli
#endif
