// tape.h: a record of ops and called graphs on watched arrays, for gradients. For a gradient, the part
// between sources and targets is copied into a graph, kernel/program/grad appends the gradient, and a plan
// runs it on the kept arrays. Recordings of equal structure (the steps of a training loop) share one plan
// (gradient_cache.h).
//
// The tape identifies an array by a serial number, assigned on first use, and keeps only elements that a
// gradient rule of a watched operand reads: a chain of additions keeps nothing, a chain of products its
// factors. It also keeps the values of variable reads; a later write allocates a new array.
//
// Inside a trace nothing is recorded, because the graph is the record: the tape stores the watched values,
// each with its first node, and the hidden nodes (traced_tape.cc).
//
// Not thread-safe: one thread at a time.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "kernel/program/trace/context.h"
#include "kernel/program/trace/gradient_cache.h"
#include "kernel/program/trace/taped.h"
#include "kernel/program/trace/trace.h"
#include "kernel/runtime/plan/plan.h"

namespace keel {

// A map from serial numbers to small numbers; only grows. A thread creates arrays with consecutive serials,
// so those index a vector; other serials, possibly between them, are in a hash table.
class SerialIndex {
 public:
  static constexpr uint32_t kNone = 0xffffffffu;
  uint32_t Find(uint64_t serial) const {
    if (uint64_t at = serial - first_; at < row_.size() && row_[at] != kNone) return row_[at];
    if (slots_.empty()) return kNone;
    for (size_t at = Slot(serial);; at = (at + 1) & mask_)
      if (slots_[at].serial == serial || !slots_[at].serial) return slots_[at].number;
  }
  void Add(uint64_t serial, uint32_t number, bool fresh) {
    constexpr uint64_t kGap = 64;  // serials of other threads between two of this thread
    if (fresh && row_.empty()) first_ = serial;
    if (uint64_t at = serial - first_; fresh && at - row_.size() < kGap) [[likely]] {
      if (at > row_.size()) row_.resize(at, kNone);
      row_.push_back(number);
    } else {
      AddSlot(serial, number);
    }
  }
  void Clear();

 private:
  void AddSlot(uint64_t serial, uint32_t number);
  struct Entry {
    uint64_t serial = 0;
    uint32_t number = kNone;
  };
  size_t Slot(uint64_t serial) const { return serial * 0x9e3779b97f4a7c15u >> 32 & mask_; }
  uint64_t first_ = 0;
  std::vector<uint32_t> row_;  // by serial - first_
  std::vector<Entry> slots_;
  size_t mask_ = 0, used_ = 0;
};

class Tape {
 public:
  struct Options {
    bool persistent = false;
    bool watch_variables = true;  // watch trainable variables when they are read
  };
  // `device` runs gradients that need no recorded op. `outer` (or null) records the same ops and the
  // gradients.
  Tape(std::shared_ptr<Context> context, Device* device, const Options& options, Tape* outer)
      : context_(std::move(context)), device_(device), outer_(outer), options_(options) {}

  absl::Status Watch(keel_array* array);
  // Watches all later reads of the variable.
  void Watch(const std::shared_ptr<Variable>& variable) { StateOf(variable).watched = true; }
  // A body begins: its nodes that are added while this tape is paused stay hidden from tapes outside the
  // body.
  void Enter(Trace* body);
  // Records a read of the variable.
  void RecordRead(const std::shared_ptr<Variable>& variable, keel_array* value);
  // Records a read in a body, which gradients do not reach.
  void RecordUnreachableRead(const std::shared_ptr<Variable>& variable);
  // An error after RecordUnreachableRead(): ReadsOf is then incomplete.
  absl::Status CheckReads(const std::shared_ptr<Variable>& variable);
  // The watched reads of the variable.
  std::span<const ArrayRef> ReadsOf(const std::shared_ptr<Variable>& variable) {
    return StateOf(variable).reads;
  }
  bool Watches(const keel_array* array) const;
  const TraceWatch* WatchOf(const Trace* trace) const;  // null if nothing is watched there
  bool WatchesOrOuter(const keel_array* array) const {
    return Watches(array) || (outer_ && outer_->WatchesOrOuter(array));
  }
  // Records a computation with its operands (null: omitted) and results, unless no operand is watched.
  void Record(const std::shared_ptr<const Taped>& taped, Device* device, std::span<keel_array* const> in,
              std::span<keel_array* const> out);
  // A result is null (or zeros, if requested) if no y depends on its xs.
  absl::StatusOr<Results> Gradient(const TapeGradientRequest& request);
  // Trace::Custom for concrete arrays (custom.cc).
  absl::StatusOr<Results> Custom(const CustomGradientRequest& request);
  void Reset();
  void Pause(bool on);  // nests: each Pause(true) needs a Pause(false)

 private:
  struct Value {
    DType dtype;
    bool watched;
    uint32_t rank, dims_at;
    ArrayRef kept;
  };
  struct Entry {
    uint32_t taped, values_at;  // operands, then results
    uint16_t n_in, n_out;
    Device* device;
  };
  static constexpr uint32_t kNone = SerialIndex::kNone;

  uint32_t Find(const keel_array* array) const;  // kNone: not recorded, or null
  uint32_t Number(keel_array* array, bool watched, bool fresh = false);
  uint32_t NumberOf(const std::shared_ptr<const Taped>& taped);
  struct VariableState {
    std::shared_ptr<Variable> variable;  // keeps the address, the key of variables_, valid
    bool watched = false, lost = false;
    std::vector<ArrayRef> reads;
  };
  VariableState& StateOf(const std::shared_ptr<Variable>& variable);
  absl::Status WatchTraced(keel_array* array);
  TraceWatch& Traced(Trace* trace);
  absl::Status WriteGradient(Trace* trace, const TapeGradientRequest& request, Results* out);
  absl::Status RunGradient(const TapeGradientRequest& request, Results* out);
  Recording Slice(const TapeGradientRequest& request) const;
  std::vector<bool> Between(const std::vector<uint32_t>& ys, const std::vector<uint32_t>& xs) const;

  void Forget();
  bool IsInactive() const { return paused_ || (used_ && !options_.persistent); }

  std::shared_ptr<Context> context_;
  Device* device_;
  Tape* outer_;
  Options options_;
  uint32_t paused_ = 0;
  bool used_ = false;
  HashMap<const Variable*, VariableState> variables_;
  std::vector<TraceWatch> traces_;
  SerialIndex numbers_;
  std::vector<Value> values_;
  std::vector<int64_t> dims_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> operands_;
  std::vector<std::shared_ptr<const Taped>> taped_ops_;
  HashMap<const Taped*, uint32_t> taped_numbers_;
  std::pair<const Taped*, uint32_t> last_taped_{nullptr, 0};  // of the previous entry: ops often repeat
};

}  // namespace keel
