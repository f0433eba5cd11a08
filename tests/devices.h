// devices.h: the devices of this build for tests of the C API, each by its plugin.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "sdk/cpp/keel/context.hpp"

namespace keel_test {

// The plugin of a device; the folder next to that of the plugins has those that are not loaded by themselves.
inline std::string PluginOf(const std::string& device) {
  const std::string file = "/keel-" + device + ".so";
  const std::string path = KEEL_TEST_PLUGINS + file;
  return std::filesystem::exists(path) ? path : KEEL_TEST_PLUGINS "/../devices" + file;
}

// Other devices: the environment variable KEEL_TEST_DEVICES="vulkan".
inline std::vector<std::string> Devices() {
  const char* named = std::getenv("KEEL_TEST_DEVICES");
  std::istringstream names(named ? named : "reference cpu");
  std::vector<std::string> all;
  for (std::string name; names >> name;)
    if (std::filesystem::exists(PluginOf(name))) all.push_back(name);
  return all;
}

// A context with only that device.
inline keel::Context Open(const std::string& device, const keel::Options& options = {}) {
  keel::Context context(options);
  context.load_plugin(PluginOf(device));
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
