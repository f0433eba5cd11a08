// interrupt.h: Ctrl-C stops what Keel runs in the main thread, which then raises KeyboardInterrupt.
//
// Python's handler of SIGINT only leaves a note, which the interpreter reads between two of its instructions;
// a run is one instruction. So runs of the main thread put a handler before Python's: it calls keel_cancel,
// then Python's. The run ends with KEEL_CANCELLED, and raising that (errors.cc) lets Python say
// KeyboardInterrupt.
//
// It is set only while the program leaves SIGINT to Python: a handler of the program's own might not raise,
// so its run is not ours to stop, nor is a handler of another library ours to replace. signal.signal() puts
// Python's own back at any time, so runs look after it; as looking is a system call, only where none did in
// the last few milliseconds. That makes 15 ns for a run. (A handler for each run alone would be two system
// calls. A thread that waits at Python's wakeup fd would need two calls for each run as well, and threads
// make fork() unsafe.)
//
// Runs of other threads are not watched, but end as well while the main thread's is being stopped:
// keel_cancel is about whole contexts.
#ifndef KEEL_PYTHON_INTERRUPT_H
#define KEEL_PYTHON_INTERRUPT_H
#include <nanobind/nanobind.h>
#include <pthread.h>

namespace keel_python {

namespace nb = nanobind;

/// A run, while it lives, if it is one of the main thread. Made and ended with the GIL.
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

/// As keel_cancel on the default context; stays so while Ctrl-C is handled.
void cancel(bool on);
void install_interrupt();

}  // namespace keel_python
#endif
