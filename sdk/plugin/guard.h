// guard.h: no C++ exception leaves a plugin. Guarded<F> is F as a function of Keel's tables: an exception
// becomes an error code with a message, or a result of zero where there is no code.
#ifndef KEEL_PLUGIN_GUARD_H
#define KEEL_PLUGIN_GUARD_H
#include <keel/keel_host.h>

#include <atomic>
#include <exception>
#include <new>
#include <type_traits>

namespace keel::plugin {

// For messages. Set it in the first function that gets a host, such as keel_device.count.
inline std::atomic<const keel_host*> guard_host = nullptr;

// The code of the exception in flight, with its message.
inline keel_rc fail_by_exception() noexcept {
  const auto fail = [](keel_rc code, const char* message) {
    const keel_host* host = guard_host;
    return host ? host->fail(code, message) : code;
  };
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return fail(KEEL_OOM, "no memory left in the process");
  } catch (const std::exception& e) {
    return fail(KEEL_INTERNAL, e.what());
  } catch (...) {
    return fail(KEEL_INTERNAL, "an exception of unknown type");
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
        return R();  // no devices, no match
    }
  }
};
template <auto function>
inline constexpr auto Guarded = &GuardedCall<function, decltype(function)>::Call;

}  // namespace keel::plugin
#endif
