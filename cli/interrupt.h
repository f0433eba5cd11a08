// interrupt.h: Ctrl-C while a graph runs: the run ends as a failure of libkeel would, with its exit code
// and its report, and not in the middle of a line. A second Ctrl-C ends the process.
#ifndef KEEL_CLI_INTERRUPT_H
#define KEEL_CLI_INTERRUPT_H
#include <keel/session.hpp>

namespace cli {

// While it lives, SIGINT stops the runs of this context. One at a time.
class Interruptible {
 public:
  explicit Interruptible(const keel::Context& context);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
};

}  // namespace cli
#endif
