// failure.h: importer errors: Failure is thrown, import() catches it and reports it to Keel. cat()
// concatenates text and numbers independent of the locale.
#pragma once
#include <string>
#include <string_view>
#include <type_traits>

#include "abi/keel_plugin.h"

namespace onnx_import {

struct Failure {
  keel_rc rc;
  std::string text;  // empty: Keel itself failed and has the text
};

inline std::string piece(std::string_view s) { return std::string(s); }
template <class T>
requires std::is_arithmetic_v<T> std::string piece(T n) { return std::to_string(n); }
template <class... T>
std::string cat(const T&... parts) {
  std::string all;
  ((all += piece(parts)), ...);
  return all;
}

[[noreturn]] inline void refuse(keel_rc rc, std::string text) { throw Failure{rc, std::move(text)}; }
inline void check(keel_rc rc) {
  if (rc) throw Failure{rc, ""};
}

}  // namespace onnx_import
