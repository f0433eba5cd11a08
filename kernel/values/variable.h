// variable.h: state that outlives runs: a tensor of fixed type whose value is replaced as a whole.
// Thread-safe; shared by eager code, sessions and runs.
//
// The value is a copy-on-write array. Read shares it; Assign replaces it; Add updates it in place if the
// variable is its sole owner and the memory is Keel's own, and otherwise creates a new array. An array
// returned by Read therefore never changes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernel/base/mutex.h"
#include "kernel/values/array.h"

namespace keel {

class Variable {
 public:
  // value: a row-major array in host memory that nothing else writes from now on. name: its name in modules
  // and files, or "". trainable: tapes watch it by default.
  explicit Variable(ArrayRef value, std::string name = "", bool trainable = true)
      : dtype_(value->dtype),
        shape_(ShapeOf(value)),
        name_(std::move(name)),
        trainable_(trainable),
        value_(std::move(value)) {}
  // Unique in the process.
  uint64_t id() const { return id_; }
  const std::string& name() const { return name_; }
  bool trainable() const { return trainable_; }
  DType dtype() const { return dtype_; }
  std::span<const int64_t> shape() const { return shape_; }
  ArrayRef Read() const;
  // Row-major, of the variable's type; nothing else may write it from now on.
  void Assign(ArrayRef value);
  // Adds or subtracts, atomically, row-major elements of the variable's type and count. Integers wrap; f16
  // and bf16 are rounded once. Fails if a new array is needed and memory runs out.
  absl::Status Add(const void* elements, bool subtract);

 private:
  static std::vector<int64_t> ShapeOf(const ArrayRef& a) { return {a->shape().begin(), a->shape().end()}; }
  const DType dtype_;
  const std::vector<int64_t> shape_;
  static uint64_t NextId();
  const uint64_t id_ = NextId();
  const std::string name_;
  const bool trainable_;
  mutable Mutex mutex_;
  ArrayRef value_;
};

// to[i] = a[i] + b[i], or - if `subtract`. `to` may equal `a`. No-op for bool.
void AddElements(DType dtype, bool subtract, const void* a, const void* b, void* to, int64_t count);

}  // namespace keel
