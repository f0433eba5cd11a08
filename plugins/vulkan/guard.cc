// guard.cc: see guard.h.
#include "guard.h"

#include <atomic>
#include <new>

namespace vulkan {
namespace {

std::atomic<const keel_host*> messages = nullptr;

keel_rc Fail(keel_rc code, const char* message) {
  const keel_host* host = messages;
  return host ? host->fail(code, message) : code;
}

}  // namespace

void SetHost(const keel_host* host) { messages = host; }

keel_rc FailByException() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return Fail(KEEL_OOM, "keel-vulkan: no memory left in the process");
  } catch (const std::exception& e) {
    return Fail(KEEL_INTERNAL, e.what());
  } catch (...) {
    return Fail(KEEL_INTERNAL, "keel-vulkan: an exception of unknown type");
  }
}

}  // namespace vulkan
