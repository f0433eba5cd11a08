// guard.h: no C++ exception leaves the plugin. Guarded<F> is F as a function of Keel's tables.
#ifndef KEEL_PLUGINS_VULKAN_GUARD_H
#define KEEL_PLUGINS_VULKAN_GUARD_H
#include <type_traits>

#include "vulkan.h"

namespace vulkan {

// The code for the exception in flight, with its message.
keel_rc FailByException() noexcept;
void SetHost(const keel_host* host);  // for messages

template <typename F, typename... A>
auto Guard(F function, A... arguments) noexcept {
  using Result = decltype(function(arguments...));
  try {
    return function(arguments...);
  } catch (...) {
    const keel_rc rc = FailByException();
    if constexpr (std::is_same_v<Result, keel_rc>)
      return rc;
    else
      return Result();  // no devices, no match
  }
}

template <auto function, typename F>
struct GuardedCall;
template <auto function, typename R, typename... A>
struct GuardedCall<function, R (*)(A...)> {
  static R Call(A... arguments) noexcept { return Guard(function, arguments...); }
};
template <auto function>
inline constexpr auto Guarded = &GuardedCall<function, decltype(function)>::Call;

}  // namespace vulkan
#endif
