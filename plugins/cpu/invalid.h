// invalid.h: did a thread of a team meet a NaN? oneDNN's relu, clip and gelu give a number for a NaN (or a
// NaN for an infinity), but the instructions that do so raise the processor's sticky "invalid operation"
// flag: on each level of x86-64 and in each kernel, which tests/conformance/test_nan.py checks. Reading the
// flags after a region costs less than a microsecond; looking at the numbers would cost a pass over memory
// for each op.
#pragma once

#include <cstdint>

namespace keel_cpu {

class InvalidWatch {
 public:
  explicit InvalidWatch(int threads);  // of the team that will work; clears their flags
  ~InvalidWatch();                     // the caller's flag is as it was, or raised if work raised it
  InvalidWatch(const InvalidWatch&) = delete;
  InvalidWatch& operator=(const InvalidWatch&) = delete;
  void Clear();
  struct Seen {
    bool raised, replaced;  // replaced: OpenMP put a new thread in the place of one, whose flag is lost
  };
  Seen Look() const;

 private:
  int threads_;
  bool before_;
  uint64_t number_ = 0;
};

void RaiseInvalid();  // of the calling thread

}  // namespace keel_cpu
