// interrupt.cc: see interrupt.h.
#include "interrupt.h"

#include <csignal>

namespace cli {
namespace {

keel_context* running = nullptr;  // set before the handler is
struct sigaction before;

void on_signal(int) { keel_cancel(running, 1); }

}  // namespace

Interruptible::Interruptible(const keel::Context& context) {
  running = context.get();
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESETHAND | SA_RESTART;  // the second one is not ours
  sigaction(SIGINT, &action, &before);
  if (before.sa_handler == SIG_IGN) sigaction(SIGINT, &before, nullptr);  // as nohup wants it
}

Interruptible::~Interruptible() { sigaction(SIGINT, &before, nullptr); }

}  // namespace cli
