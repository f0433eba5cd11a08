// interrupt.h: Ctrl-C while a graph runs: the run ends as a failure of libkeel would, with its exit code
// and its report, and not in the middle of a line. A second Ctrl-C ends the process. What measures gives what
// it has by then: kept_going() around each run.
#ifndef KEEL_CLI_INTERRUPT_H
#define KEEL_CLI_INTERRUPT_H
#include <keel/session.hpp>

#include "cli/exit.h"

namespace cli {

// While it lives, SIGINT stops the runs of this context. One at a time.
class Interruptible {
 public:
  explicit Interruptible(const keel::Context& context);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
};
bool interrupted();  // Ctrl-C came while one lived

// Runs f; false where Ctrl-C stopped it, or came before.
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
// How a command ends that Ctrl-C cut short after `done` of `wanted`: says so on stderr.
int report_interrupted(const char* command, int64_t done, int64_t wanted, const char* what);

}  // namespace cli
#endif
