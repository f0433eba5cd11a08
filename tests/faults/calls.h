// calls.h: helpers for scenarios: handles that free themselves, calls that stop at the first error.
#pragma once

#include <cstdio>
#include <cstring>
#include <utility>

#include "tests/faults/outcome.h"

namespace keel::test {

// A handle of keel.h that frees its object.
template <typename T, void (*Free)(T*)>
class Own {
 public:
  Own() = default;
  explicit Own(T* p) : p_(p) {}
  Own(const Own&) = delete;
  Own& operator=(const Own&) = delete;
  ~Own() { Free(p_); }
  operator T*() const { return p_; }  // NOLINT: the parameter type of the C functions
  T** operator&() { return &p_; }     // NOLINT: the same

 private:
  T* p_ = nullptr;
};
using OwnContext = Own<keel_context, keel_context_free>;
using OwnModule = Own<keel_module, keel_module_free>;
using OwnSession = Own<keel_session, keel_session_free>;
using OwnPlan = Own<keel_plan, keel_plan_free>;
using OwnOp = Own<keel_op, keel_op_free>;
using OwnArray = Own<keel_array, keel_array_free>;
using OwnText = Own<keel_text, keel_text_free>;

// Makes calls until one fails: Try(f, args...) is f(args..., &error).
struct Calls {
  Outcome outcome;

  template <typename F, typename... Args>
  bool Try(F f, Args&&... args) {
    keel_error* error = nullptr;
    outcome.rc = f(args..., &error);
    if (outcome.rc == KEEL_OK) return true;
    if (error)
      std::snprintf(outcome.message, sizeof outcome.message, "%s",
                    keel_error_text(error, KEEL_ERROR_MESSAGE));
    keel_error_free(error);
    return false;
  }
};

inline bool MakeArray(Calls& c, keel_context* context, std::pair<const float*, int64_t> data,
                      keel_array** out) {
  int64_t shape[] = {data.second / 2, 2};
  keel_tensor t = {const_cast<float*>(data.first), {1, 0}, 2, {2, 32, 1}, shape, nullptr, 0};
  return c.Try(keel_array_from_tensor, context, &t, nullptr, nullptr, out);
}

inline bool Equals(keel_array* a, const float* wanted, size_t n) {
  keel_tensor t;
  keel_array_tensor(a, &t);
  return std::memcmp(t.data, wanted, n * sizeof(float)) == 0;
}

inline constexpr const char* const* kNone = nullptr;

}  // namespace keel::test
