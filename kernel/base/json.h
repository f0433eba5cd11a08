// json.h: a writer of JSON text for the reports of the C ABI.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace keel {

// Length of the UTF-8 sequence at the start of s; 0 if it is malformed.
size_t Utf8Length(std::string_view s);

class Json {
 public:
  Json& BeginObject() { return Open('{'); }
  Json& EndObject() { return Close('}'); }
  Json& BeginArray() { return Open('['); }
  Json& EndArray() { return Close(']'); }
  Json& Key(std::string_view name);
  Json& String(std::string_view text);  // bytes that are not valid UTF-8 become U+FFFD
  Json& Int(int64_t n);
  Json& Double(double d);  // not finite: null
  Json& Bool(bool b);
  Json& Raw(std::string_view json);  // appended unchanged
  // A member that is an array of objects; write(item) writes the members of one.
  template <typename List, typename Write>
  Json& Objects(std::string_view name, const List& list, const Write& write) {
    Key(name);
    return Objects(list, write);
  }
  template <typename List, typename Write>
  Json& Objects(const List& list, const Write& write) {
    BeginArray();
    for (const auto& item : list) {
      BeginObject();
      write(item);
      EndObject();
    }
    return EndArray();
  }
  std::string Take() { return std::move(text_); }

 private:
  Json& Open(char c);
  Json& Close(char c);
  void Separate();
  void Quote(std::string_view text);
  std::string text_;
  bool first_ = true;  // no element written yet in the innermost list or object
};

}  // namespace keel
