// control.h: what a test sets and reads. Also exported with C linkage (hostile_set, hostile_get,
// hostile_fail), to be found by dlsym or ctypes in the plugin's file.
//
// Settings: "seed"; "memory" (bytes that a device has), "max_segment"; "lost" (1: every call fails from now
// on); "delay" (microseconds that each command takes); "peers" (0: no copies straight between devices);
// planted faults of a careless core, as a proxy between core and device would make them: "drop_wait" (1:
// queue_wait does nothing), "early_free" (1: query says that all is done), "late_read" (1: host_wait for
// uploads returns before they were read). Counts: "segments", "bytes", "queues", "devices", "states" that
// live; "calls" of functions that can fail since hostile_fail, "fired"; "violations" of the contract;
// "commands" that ran; "peer_copies" encoded; "orders" (log2, in thousandths, of the number of legal orders
// since the seed was set).
#ifndef KEEL_TESTS_HOSTILE_CONTROL_H
#define KEEL_TESTS_HOSTILE_CONTROL_H
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "abi/keel_plugin.h"

namespace hostile {

struct Control {
  std::atomic<uint64_t> seed{1}, memory{uint64_t{256} << 20}, max_segment{0}, lost{0}, delay{0}, peers{1};
  std::atomic<uint64_t> drop_wait{0}, early_free{0}, late_read{0};
  std::atomic<uint64_t> segments{0}, bytes{0}, queues{0}, devices{0}, states{0};
  std::atomic<uint64_t> calls{0}, fired{0}, violations{0}, commands{0}, peer_copies{0}, millibits{0};

  std::mutex mutex;
  std::string fail_function;  // "": any
  uint64_t fail_at = 0;       // 0: never
  int32_t fail_code = KEEL_INTERNAL;
  std::string first_violation;

  // Is this call of the function the one that shall fail?
  bool Fails(const char* function, keel_rc* code);
  void Violation(const std::string& what);
};
Control& control();

}  // namespace hostile

namespace hostile {

// Told +1 when a function of the device begins and -1 when it ends: a test that makes every allocation fail
// means those of Keel, not the device's own. hostile_spare sets it.
using Hook = void (*)(int);
extern std::atomic<Hook> spare;

template <auto Function>
struct Spared;
template <typename Result, typename... Args, Result (*Function)(Args...)>
struct Spared<Function> {
  struct Inside {
    Hook hook = spare;
    Inside() {
      if (hook) hook(1);
    }
    ~Inside() {
      if (hook) hook(-1);
    }
  };
  static Result Call(Args... args) {
    Inside inside;
    return Function(args...);
  }
};
template <auto Function>
inline constexpr auto kSpared = Spared<Function>::Call;

}  // namespace hostile

// Returns from a device function where the test asked for it.
#define HOSTILE_FAIL(host, function)                               \
  do {                                                             \
    keel_rc code_;                                                 \
    if (hostile::control().Fails(function, &code_))                \
      return (host)->fail(code_, "injected failure of " function); \
  } while (0)
#endif
