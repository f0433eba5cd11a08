// guard.h: no C++ exception leaves the plugin. Guarded<F> is F as a function of Keel's tables; an exception
// becomes an error of the call, or no devices, or no match.
#ifndef KEEL_PLUGIN_GUARD_H
#define KEEL_PLUGIN_GUARD_H
#include <keel/keel_host.h>

#include <atomic>
#include <exception>
#include <new>
#include <type_traits>

namespace keel::plugin {

// For messages; set it in the device's `count`, which Keel calls first. NULL: a failure has its code only.
inline std::atomic<const keel_host*>& guard_host() {
  static std::atomic<const keel_host*> host = nullptr;
  return host;
}

namespace detail {

inline keel_rc fail_guarded(keel_rc code, const char* message) {
  const keel_host* host = guard_host();
  return host ? host->fail(code, message) : code;
}
// The code for the exception in flight, with its message.
inline keel_rc fail_by_exception() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return fail_guarded(KEEL_OOM, "the plugin: no memory left in the process");
  } catch (const std::exception& e) {
    return fail_guarded(KEEL_INTERNAL, e.what());
  } catch (...) {
    return fail_guarded(KEEL_INTERNAL, "the plugin: an exception of unknown type");
  }
}

template <auto function, typename F>
struct GuardedCall;
template <auto function, typename R, typename... A>
struct GuardedCall<function, R (*)(A...)> {
  static R Call(A... arguments) noexcept {
    try {
      return function(arguments...);
    } catch (...) {
      const keel_rc rc = fail_by_exception();
      if constexpr (std::is_same_v<R, keel_rc>)
        return rc;
      else
        return R();
    }
  }
};

}  // namespace detail

template <auto function>
inline constexpr auto Guarded = &detail::GuardedCall<function, decltype(function)>::Call;

}  // namespace keel::plugin
#endif
