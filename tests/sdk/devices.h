// devices.h: what the SDK's tests share: a fixture that runs on each device of the default context, and the
// text of a failure.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <keel/keel.hpp>

namespace sdk_test {

class OnEachDevice : public testing::TestWithParam<std::string> {
 protected:
  keel::Scope on_ = keel::device(GetParam());
};

inline std::vector<std::string> Devices() {
  std::vector<std::string> names;
  for (std::string name : keel::default_context().devices()) names.push_back(name.substr(0, name.find(':')));
  return names;
}

// What the keel::Error of `body` says, "" if there is none.
inline std::string Failure(const std::function<void()>& body) {
  try {
    body();
  } catch (const keel::Error& e) {
    return e.what();
  }
  return "";
}
inline bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace sdk_test

#define KEEL_ON_EACH_DEVICE(Suite)                                                \
  INSTANTIATE_TEST_SUITE_P(Device, Suite, testing::ValuesIn(sdk_test::Devices()), \
                           [](const auto& info) { return info.param; })
