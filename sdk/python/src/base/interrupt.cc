// interrupt.cc: see interrupt.h.
//
// How to read it: `phase` is shared by handler and run. The handler may interrupt the main thread anywhere,
// or run on another thread concurrently; only the thread that changes kRunning continues.
#include "base/interrupt.h"

#include <sched.h>
#include <time.h>

#include <atomic>
#include <csignal>

#include "keel/scope.hpp"

namespace keel_python {

namespace {

enum Phase { kIdle, kRunning, kStopping, kStopped };
std::atomic<int> phase{kIdle};
std::atomic<keel_context*> context{nullptr};
bool asked = false;  // cancellation requested by the program
bool ours = false;   // whether our handler is set, as of looked_at
int64_t looked_at = 0;
void (*python)(int) = nullptr;   // Python's handler, if known
nb::handle signals, by_default;  // the module _signal, its default_int_handler; never freed

void stop_run() {
  int running = kRunning;
  if (!phase.compare_exchange_strong(running, kStopping)) return;
  keel_context_cancel(context, 1);
  phase = kStopped;
}

void on_interrupt(int signal) {
  stop_run();
  python(signal);
}

/// Whether SIGINT would raise KeyboardInterrupt.
bool left_to_python() { return signals.attr("getsignal")(SIGINT).is(by_default); }

/// The C function that Python sets for every signal, read from an unused signal, since SIGINT may have
/// another handler.
void (*handler_of_python())(int) {
  struct sigaction before;
  nb::object unused = signals.attr("SIG_DFL"), set = signals.attr("signal");
  if (sigaction(SIGRTMAX, nullptr, &before) || before.sa_handler != SIG_DFL) return nullptr;
  set(SIGRTMAX, by_default);
  auto found = PyOS_getsig(SIGRTMAX);
  set(SIGRTMAX, unused);
  return found;
}

void find_python_handler() {
  try {
    python = handler_of_python();
  } catch (nb::python_error& e) {  // setting a handler also runs the handlers of pending signals
    if (e.matches(PyExc_KeyboardInterrupt))
      PyErr_SetInterrupt();  // raise it again later
    else
      e.discard_as_unraisable("keel: reading Python's signal handler");
  }
}

void install_handler() {
  struct sigaction now;
  if (sigaction(SIGINT, nullptr, &now)) return;
  ours = now.sa_handler == on_interrupt;
  if (ours || now.sa_flags & SA_SIGINFO || !left_to_python()) return;
  if (!python) find_python_handler();
  if (now.sa_handler != python) return;  // of another library
  now.sa_handler = on_interrupt;
  ours = sigaction(SIGINT, &now, nullptr) == 0;
}

int64_t ticks() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);  // resolution: milliseconds; cost: a few nanoseconds
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

pthread_t Run::main_thread;

bool Run::begin() {
  if (phase.load(std::memory_order_relaxed) != kIdle) return false;
  if (int64_t now = ticks(); now != looked_at) [[unlikely]] {
    looked_at = now;
    const bool interrupted = PyOS_InterruptOccurred();  // else it is raised while the handler is installed
    context = keel::default_context().get();
    install_handler();
    if (interrupted) PyErr_SetInterrupt();
  }
  phase.store(kRunning, std::memory_order_relaxed);
  if (PyOS_InterruptOccurred()) [[unlikely]] {  // Ctrl-C before the run
    PyErr_SetInterrupt();
    if (ours) stop_run();
  }
  return true;
}

void Run::end() {
  int running = kRunning;
  if (phase.compare_exchange_strong(running, kIdle)) [[likely]]
    return;
  while (phase == kStopping) sched_yield();
  phase = kIdle;
  keel_context_cancel(context, asked);
}

void cancel(bool on) {
  asked = on;
  keel::default_context().cancel(on);
}

void install_interrupt() {
  signals = nb::module_::import_("_signal").release();
  by_default = nb::object(signals.attr("default_int_handler")).release();
  nb::object main = nb::module_::import_("threading").attr("main_thread")();
  Run::main_thread = nb::cast<pthread_t>(main.attr("ident"));
  pthread_atfork(nullptr, nullptr,
                 [] {  // the child has this thread only; a run of another thread does not exist there
                   if (phase.exchange(kIdle) > kRunning) keel_context_cancel(context, asked);
                   Run::main_thread = pthread_self();
                 });
}

}  // namespace keel_python
