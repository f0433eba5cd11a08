// number.h: numbers that a user or a model writes.
#pragma once
#include <charconv>
#include <optional>
#include <string_view>

namespace onnx_import {

// None: the text is no number of this type, or more than one.
template <class T>
std::optional<T> number_in(std::string_view text) {
  T n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(n) : std::nullopt;
}

}  // namespace onnx_import
