// interrupt.cc: see interrupt.h.
#include "cli/interrupt.h"

#include <fmt/core.h>

#include <csignal>

namespace cli {
namespace {

keel_context* running = nullptr;  // set before the handler is
struct sigaction before;

volatile std::sig_atomic_t came = 0;

void on_signal(int) {
  came = 1;
  keel_context_cancel(running, 1);
}

}  // namespace

bool interrupted() { return came != 0; }

int report_interrupted(const char* command, int64_t done, int64_t wanted, const char* what) {
  fmt::print(stderr, "keel {}: stopped by Ctrl-C after {} of {} {}\n", command, done, wanted, what);
  return kLimit;
}

Interruptible::Interruptible(const keel::Context& context) {
  running = context.get();
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESETHAND | SA_RESTART;  // the second one is not ours
  sigaction(SIGINT, &action, &before);
  if (before.sa_handler == SIG_IGN) sigaction(SIGINT, &before, nullptr);  // as nohup wants it
}

Interruptible::~Interruptible() {
  sigaction(SIGINT, &before, nullptr);
  if (came) keel_context_cancel(running, 0);  // the remaining work may run
}

}  // namespace cli
