// invalid.h: detects NaNs in a region. oneDNN's relu and clip return a number for a NaN, but the
// instructions that do so raise the processor's sticky invalid-operation flag: on each
// level of x86-64 and in each kernel, as tests/conformance/test_nan.py checks. The pool merges the flags of
// all parts of a region into its caller (threads/threads.h). Checking the data would cost a pass over memory
// per op.
#pragma once

namespace keel_cpu {

class InvalidWatch {
 public:
  InvalidWatch();   // clears the calling thread's flag
  ~InvalidWatch();  // restores the flag, or leaves it raised if it was raised meanwhile
  InvalidWatch(const InvalidWatch&) = delete;
  InvalidWatch& operator=(const InvalidWatch&) = delete;
  void Clear();
  bool Raised() const;

 private:
  bool before_;
};

void RaiseInvalid();  // on the calling thread

}  // namespace keel_cpu
