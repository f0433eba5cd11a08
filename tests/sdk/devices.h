// devices.h: shared by the SDK's tests: a fixture that runs on each device of the default context, and the
// message of a failure.
#pragma once

#include <gtest/gtest.h>

#include <keel/keel.hpp>

#include "tests/failure.h"

namespace sdk_test {

class OnEachDevice : public testing::TestWithParam<std::string> {
 protected:
  keel::Scope on_ = keel::device(GetParam());
};

inline std::vector<std::string> Devices() {
  std::vector<std::string> names;
  for (std::string name : keel::default_context().devices())
    if (name = name.substr(0, name.find(':')); std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  return names;
}

// What Tensor::device() says of results of the device: "" if it computes in host memory.
inline std::string MemoryOf(const std::string& device) {
  return device == "cpu" || device == "reference" ? "" : device + ":0";
}

using keel_test::Failure;
using keel_test::Has;

}  // namespace sdk_test

#define KEEL_ON_EACH_DEVICE(Suite)                                                \
  INSTANTIATE_TEST_SUITE_P(Device, Suite, testing::ValuesIn(sdk_test::Devices()), \
                           [](const auto& info) { return info.param; })
