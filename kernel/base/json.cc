#include "kernel/base/json.h"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace keel {
size_t Utf8Length(std::string_view s) {
  auto byte = [&](size_t i) { return i < s.size() ? static_cast<uint8_t>(s[i]) : 0u; };
  unsigned c = byte(0);
  if (c < 0x80) return 1;
  size_t n = c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
  for (size_t i = 1; i < n; i++)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  bool overlong = (c == 0xe0 && byte(1) < 0xa0) || (c == 0xf0 && byte(1) < 0x90);
  bool beyond = (c == 0xed && byte(1) > 0x9f) || (c == 0xf4 && byte(1) > 0x8f);  // surrogates, > U+10FFFF
  return overlong || beyond ? 0 : n;
}

void Json::Separate() {
  if (!first_) text_ += ',';
  first_ = false;
}

Json& Json::Open(char c) {
  Separate();
  text_ += c;
  first_ = true;
  return *this;
}

Json& Json::Close(char c) {
  text_ += c;
  first_ = false;
  return *this;
}

Json& Json::Key(std::string_view name) {
  Separate();
  Quote(name);
  text_ += ':';
  first_ = true;
  return *this;
}

Json& Json::String(std::string_view text) {
  Separate();
  Quote(text);
  return *this;
}

void Json::Quote(std::string_view s) {
  text_ += '"';
  while (!s.empty()) {
    size_t n = Utf8Length(s);
    if (n == 0) {
      text_ += "\\ufffd";
      n = 1;
    } else if (static_cast<unsigned char>(s[0]) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", s[0]);
      text_ += escape;
    } else {
      if (s[0] == '"' || s[0] == '\\') text_ += '\\';
      text_ += s.substr(0, n);
    }
    s.remove_prefix(n);
  }
  text_ += '"';
}

Json& Json::Int(int64_t n) {
  Separate();
  text_ += std::to_string(n);
  return *this;
}

Json& Json::Double(double d) {
  Separate();
  char digits[40];
  auto end = std::to_chars(digits, digits + sizeof digits, d).ptr;
  text_ += std::isfinite(d) ? std::string_view(digits, static_cast<size_t>(end - digits))
                            : std::string_view("null");
  return *this;
}

Json& Json::Bool(bool b) {
  Separate();
  text_ += b ? "true" : "false";
  return *this;
}

Json& Json::Raw(std::string_view json) {
  Separate();
  text_ += json;
  return *this;
}

}  // namespace keel
