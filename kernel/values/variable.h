// variable.h: state that outlives runs: a tensor of fixed type whose value is replaced as a whole. Shared by
// eager code, sessions and runs on any thread.
//
// How to read it: the value is an array that nobody changes while somebody else holds it. Read shares it;
// Assign puts another one in its place; Add changes it where it lies if the variable is its only holder and
// the memory is Keel's own, else makes a new one. So what was read stays what it was.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernel/base/mutex.h"
#include "kernel/values/array.h"

namespace keel {

class Variable {
 public:
  // A row-major array in host memory, which nobody else may write from now on. name: in modules and files, ""
  // if it has none. trainable: tapes watch what is read of it, unless they are told not to.
  explicit Variable(ArrayRef value, std::string name = "", bool trainable = true)
      : dtype_(value->dtype),
        shape_(ShapeOf(value)),
        name_(std::move(name)),
        trainable_(trainable),
        value_(std::move(value)) {}
  // Another one for each variable of the process.
  uint64_t id() const { return id_; }
  const std::string& name() const { return name_; }
  bool trainable() const { return trainable_; }
  DType dtype() const { return dtype_; }
  std::span<const int64_t> shape() const { return shape_; }
  ArrayRef Read() const;
  // Row-major, of the variable's type; nobody else may write it from now on.
  void Assign(ArrayRef value);
  // Adds or subtracts row-major elements of the variable's type and count, as one step. Integers wrap; f16
  // and bf16 are rounded once. An error where there is no memory for a new array.
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

// to[i] = a[i] + b[i] (or -), with `to` the same as a or apart. bool is no number: nothing happens.
void AddElements(DType dtype, bool subtract, const void* a, const void* b, void* to, int64_t count);

}  // namespace keel
