// variable.h: state that outlives runs: a tensor of fixed type whose value is replaced as a whole.
// Thread-safe; shared by eager code, sessions and runs.
//
// The value is a copy-on-write array in host or device memory. Read shares it; Assign replaces it; Add
// updates it in place if the variable is its sole owner and the memory is Keel's own, and otherwise creates a
// new array. An array returned by Read therefore never changes.
//
// A write may depend on runs in flight (pending.h). The variable then keeps the value before the write, and
// takes it back once the failure of such a run is reported: its value is that of the exact prefix of the
// effects before the fault. Until then it returns the new value, whose elements are the error of the run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernel/base/mutex.h"
#include "kernel/language/values/array.h"
#include "kernel/language/values/pending.h"

namespace keel {

class Variable {
 public:
  // value: a row-major array that nothing else writes from now on. name: its name in modules and files, or
  // "". trainable: tapes watch it by default.
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
  // Does not wait. pending: receives the runs on which the value depends.
  ArrayRef Read(PendingRuns* pending = nullptr) const;
  // In host memory. Waits for the runs on which the value depends; the error of the first that failed.
  absl::StatusOr<ArrayRef> ReadOnHost() const;
  // value: row-major, of the variable's type; nothing else may write it from now on. runs: those on which the
  // write depends; a failure that is known already is the error, and nothing is written. Waits if too many
  // values would have to be kept.
  absl::Status Assign(ArrayRef value, const PendingRuns& runs = {});
  // The same if the value still is `old`; otherwise returns false.
  absl::StatusOr<bool> Replace(const keel_array* old, ArrayRef value, const PendingRuns& runs);
  // Adds or subtracts, atomically, row-major elements of the variable's type and count; a value in device
  // memory moves to the host. Integers wrap; f16 and bf16 are rounded once. Fails if a new array is needed
  // and memory runs out.
  absl::Status Add(const void* elements, bool subtract, const PendingRuns& runs = {});

 private:
  struct Version {  // the value before a write
    ArrayRef value;
    PendingRuns runs;
    bool Is(PendingRun::State least) const { return runs.First(least) != nullptr; }
  };
  static constexpr size_t kVersions = 3;
  void Settle(std::vector<Version>* dropped) const;
  absl::StatusOr<bool> Swap(const keel_array* old, ArrayRef* value, const PendingRuns& runs);
  absl::Status AddHere(const void* elements, bool subtract);
  static std::vector<int64_t> ShapeOf(const ArrayRef& a) { return {a->shape().begin(), a->shape().end()}; }
  const DType dtype_;
  const std::vector<int64_t> shape_;
  static uint64_t NextId();
  const uint64_t id_ = NextId();
  const std::string name_;
  const bool trainable_;
  mutable Mutex mutex_;
  mutable ArrayRef value_;
  mutable std::vector<Version> versions_;  // oldest first
};

// to[i] = a[i] + b[i], or - if `subtract`. `to` may equal `a`. No-op for bool.
void AddElements(DType dtype, bool subtract, const void* a, const void* b, void* to, int64_t count);

}  // namespace keel
