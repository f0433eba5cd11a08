// printer.h: where `print` goes, and tensors as text for it and for `assert`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "abi/keel_context.h"
#include "kernel/base/mutex.h"

namespace keel {

// One per context. Lines come out whole and one after the other.
class Printer {
 public:
  void Set(keel_print_fn hook, void* arg);  // null: back to the default, one write per line
  void Write(int32_t stream, std::string_view line);

 private:
  RecursiveMutex mutex_;  // a hook may run what prints
  keel_print_fn hook_ = nullptr;
  void* arg_ = nullptr;
};

// Row-major and in host memory: "[[1 2 3 ... 8 9 10]\n [...]]"; each dim shows `edge` elements at each end,
// -1: all. Digits are the shortest that read back the same.
std::string FormatTensor(const keel_tensor& tensor, int64_t edge);

}  // namespace keel
