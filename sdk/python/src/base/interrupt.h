// interrupt.h: Ctrl-C stops the run of the main thread, which then raises KeyboardInterrupt.
//
// Python's handler of SIGINT only sets a flag, which the interpreter checks between two instructions; a run
// is one instruction. So runs of the main thread install a handler that calls keel_context_cancel, then
// Python's. The run ends with KEEL_CANCELLED, and raising that error (errors.cc) makes Python raise
// KeyboardInterrupt.
//
// It is installed only while the program leaves SIGINT to Python: a handler of the program might not raise,
// so its run must not be stopped, and handlers of other libraries are not replaced. signal.signal() may
// restore Python's at any time, so runs check the handler; since this is a system call, at most once in a few
// milliseconds, which costs 15 ns per run. (Installing the handler per run would take two system calls. A
// thread waiting at Python's wakeup fd would take two calls per run as well, and threads make fork() unsafe.)
//
// Runs of other threads are not interrupted, but end, too, while the main thread's run is being stopped,
// since keel_context_cancel applies to contexts.
#ifndef KEEL_PYTHON_INTERRUPT_H
#define KEEL_PYTHON_INTERRUPT_H
#include <nanobind/nanobind.h>
#include <pthread.h>

namespace keel_python {

namespace nb = nanobind;

/// Marks a run of the main thread during its lifetime. Constructed and destroyed with the GIL.
class Run {
 public:
  Run() : watched_(pthread_equal(pthread_self(), main_thread) && begin()) {}
  ~Run() {
    if (watched_) end();
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

 private:
  friend void install_interrupt();
  static bool begin();
  static void end();
  bool watched_;
  static pthread_t main_thread;
};

/// keel_context_cancel on the default context; stays in effect while Ctrl-C is handled.
void cancel(bool on);
void install_interrupt();

}  // namespace keel_python
#endif
