// library_call.h: a product of matrices or a convolution by a library: cuBLASLt (blas.h) or cuDNN (dnn.h).
#ifndef KEEL_PLUGINS_CUDA_LIBRARY_CALL_H
#define KEEL_PLUGINS_CUDA_LIBRARY_CALL_H
#include <array>
#include <memory>

#include "queue.h"

namespace keel_cuda {

struct LibraryCall {
  static constexpr size_t kMostOperands = 5;
  using Addresses = std::array<uint64_t, kMostOperands>;
  static constexpr uint64_t kAlignment = 16;    // of all operands, in bytes
  static constexpr size_t kResult = 2;          // the operand that it writes
  std::array<uint64_t, kMostOperands> bytes{};  // of the operands
  virtual ~LibraryCall() = default;
  // In a stream capture the graph keeps the addresses.
  virtual keel_rc Encode(keel_queue q, const Addresses& at) = 0;
};

}  // namespace keel_cuda
#endif
