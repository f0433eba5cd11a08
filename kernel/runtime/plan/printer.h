// printer.h: the output of `print`, and the text of tensors for `print` and `assert`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "abi/keel_context.h"
#include "kernel/base/mutex.h"

namespace keel {

// One per context. Thread-safe: lines are never interleaved.
class Printer {
 public:
  void Set(keel_print_fn hook, void* arg);  // null: the default, one write per line
  void Write(int32_t stream, std::string_view line);

 private:
  RecursiveMutex mutex_;  // a hook may run a plan that prints
  keel_print_fn hook_ = nullptr;
  void* arg_ = nullptr;
};

// The text of a row-major tensor in host memory: "[[1 2 3 ... 8 9 10]\n [...]]". Each dim shows `edge`
// elements at each end; -1: all. Numbers have the fewest digits that parse to the same value.
std::string FormatTensor(const keel_tensor& tensor, int64_t edge);

}  // namespace keel
