// invalid.h: did a region meet a NaN? oneDNN's relu, clip and gelu give a number for a NaN (or a
// NaN for an infinity), but the instructions that do so raise the processor's sticky "invalid operation"
// flag: on each level of x86-64 and in each kernel, which tests/conformance/test_nan.py checks. The pool
// hands the flags of all parts of a region to its caller (threads/threads.h); looking at the numbers would
// cost a pass over memory for each op.
#pragma once

namespace keel_cpu {

class InvalidWatch {
 public:
  InvalidWatch();   // clears the calling thread's flag
  ~InvalidWatch();  // the flag is as it was, or raised if work raised it
  InvalidWatch(const InvalidWatch&) = delete;
  InvalidWatch& operator=(const InvalidWatch&) = delete;
  void Clear();
  bool Raised() const;

 private:
  bool before_;
};

void RaiseInvalid();  // of the calling thread

}  // namespace keel_cpu
