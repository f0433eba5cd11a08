// devices.h: the devices of this build for tests of the C API, each by its plugin.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sdk/cpp/keel/context.hpp"

namespace keel_test {

inline std::vector<std::string> Devices() {
  std::vector<std::string> all;
  for (const char* name : {"reference", "cpu"})
    if (std::filesystem::exists(std::string(KEEL_TEST_PLUGINS "/keel-") + name + ".so"))
      all.emplace_back(name);
  return all;
}

// A context with only that device.
inline keel::Context Open(const std::string& device, const keel::Options& options = {}) {
  keel::Context context(options);
  context.load_plugin(KEEL_TEST_PLUGINS "/keel-" + device + ".so");
  return context;
}

// Devices that ThreadSanitizer can check: oneDNN is not built for it.
inline std::vector<std::string> ThreadedDevices() {
#if defined(__SANITIZE_THREAD__)
  return {"reference"};
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
  return {"reference"};
#endif
#endif
  return Devices();
}

}  // namespace keel_test
