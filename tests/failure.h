// failure.h: the message of a failure.
#pragma once

#include <functional>
#include <keel/error.hpp>
#include <string>

namespace keel_test {

// The message of the keel::Error that `body` throws, "" if there is none.
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

}  // namespace keel_test
