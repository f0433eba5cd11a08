// control.h: settings and counters of the device for tests. Also exported with C linkage (hostile_set,
// hostile_get, hostile_fail) for dlsym or ctypes.
//
// Settings: "seed"; "memory" (bytes of a device), "max_segment"; "lost" (1: every call fails from now on);
// "delay" (microseconds per command); "peers" (0: no direct copies between devices); "shared" (0: no memory
// that both sides see); "downloads" (1: a download queue, 0: none, 2: with odd seeds); "wraps" (0: no
// segments of memory that Keel did not allocate); "params" (bytes of parameters of each launch), "records"
// (0: no recordings); injected faults, as a proxy between core and device: "drop_wait" (1: queue_wait does
// nothing), "early_free" (1: query reports that all work is done), "late_read" (1: host_wait for uploads
// returns before they were read). Counters: live "segments", "wrapped", "bytes", "queues", "devices",
// "states", "recordings"; "replays"; "calls" of fallible functions since hostile_fail, "fired"; "violations"
// of the contract; "commands" that ran; "peer_copies" encoded; "orders" (log2, in thousandths, of the number
// of legal orders since the seed was set).
#ifndef KEEL_TESTS_HOSTILE_CONTROL_H
#define KEEL_TESTS_HOSTILE_CONTROL_H
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "abi/keel_plugin.h"

namespace hostile {

struct Control {
  std::atomic<uint64_t> seed{1}, memory{uint64_t{256} << 20}, max_segment{0}, lost{0}, delay{0}, peers{1},
      shared{1}, downloads{2}, wraps{1}, params{0}, records{1};
  std::atomic<uint64_t> drop_wait{0}, early_free{0}, late_read{0};
  std::atomic<uint64_t> segments{0}, wrapped{0}, bytes{0}, queues{0}, devices{0}, states{0}, recordings{0},
      replays{0};
  std::atomic<uint64_t> calls{0}, fired{0}, violations{0}, commands{0}, peer_copies{0}, millibits{0};

  std::mutex mutex;
  std::string fail_function;  // "": any
  uint64_t fail_at = 0;       // 0: never
  int32_t fail_code = KEEL_INTERNAL;
  std::string first_violation;

  // Whether this call of the function must fail.
  bool Fails(const char* function, keel_rc* code);
  void Violation(const std::string& what);
};
Control& control();

}  // namespace hostile

namespace hostile {

// Called with +1 when a function of the device begins and -1 when it ends, so that a test that makes every
// allocation fail can exempt the device's own. Set by hostile_spare.
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

// Returns from a device function if the test injected a failure there.
#define HOSTILE_FAIL(host, function)                               \
  do {                                                             \
    keel_rc code_;                                                 \
    if (hostile::control().Fails(function, &code_))                \
      return (host)->fail(code_, "injected failure of " function); \
  } while (0)
#endif
