// options.h: named options (keel_kv) of the functions that create an object.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>

#include "abi/keel.h"
#include "kernel/runtime/pass/pass.h"

namespace keel {

// An option and the variable that it sets.
struct Option {
  std::string name;
  std::function<absl::Status(const std::string& value)> set;
  bool repeats = false;

  static Option Text(const char* name, std::string* to);
  static Option Number(const char* name, uint32_t* to, uint64_t min, uint64_t max);
  static Option Number(const char* name, uint64_t* to, uint64_t min, uint64_t max);
  // words: "off, auto or all", for the values 0, 1 and 2.
  template <typename T>
  static Option Choice(const char* name, T* to, const char* words) {
    static_assert(sizeof(T) == 1);  // a bool or a small enum
    return Byte(name, reinterpret_cast<unsigned char*>(to), words);
  }
  static Option Flag(const char* name, bool* to) { return Choice(name, to, "0 or 1"); }
  static Option Threads(uint32_t* to) { return Number("threads", to, 1, 4096); }
  static Option Memory(uint64_t* to) { return Number("memory", to, 1, UINT64_MAX); }
  static Option Timeout(uint32_t* to) { return Number("timeout_ms", to, 1, UINT32_MAX); }
  static Option Level(PassChoice* to);
  static Option Passes(PassChoice* to);

 private:
  static Option Byte(const char* name, unsigned char* to, const char* words);
};

// Each option at most once unless it repeats. An unknown option is an error that lists the known ones.
absl::Status SetOptions(std::initializer_list<Option> known, const keel_kv* given, uint32_t n);

}  // namespace keel
