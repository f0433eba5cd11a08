// devices.h: the devices of this build that tests of the C API run on, by their plugins.
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

// With that device and no other.
inline keel::Context Open(const std::string& device, const keel::Options& options = {}) {
  keel::Context context(options);
  context.load_plugin(KEEL_TEST_PLUGINS "/keel-" + device + ".so");
  return context;
}

// Those on which threads can be watched: oneDNN is not built for ThreadSanitizer.
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
