// live_bytes.h: bytes of the heap in use, as reported by the C library or a sanitizer.
#pragma once

#include <malloc.h>

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KEEL_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KEEL_TEST_SANITIZED 1
#endif
#endif
#ifdef KEEL_TEST_SANITIZED
extern "C" size_t __sanitizer_get_current_allocated_bytes();
#endif

namespace keel_test {

inline double LiveBytes() {
#ifdef KEEL_TEST_SANITIZED
  return static_cast<double>(__sanitizer_get_current_allocated_bytes());
#else
  struct mallinfo2 all = mallinfo2();
  return static_cast<double>(all.uordblks) + static_cast<double>(all.hblkhd);
#endif
}

}  // namespace keel_test
