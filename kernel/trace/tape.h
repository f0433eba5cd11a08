// tape.h: what a program did with watched arrays, so that gradients can be taken afterwards. A tape is a
// list of applied ops and called graphs. For a gradient, the part between the sources and the targets is
// written as a graph, kernel/grad appends the gradient, and a plan runs it on the arrays that were kept;
// recordings of the same structure (the steps of a training loop) share one plan (gradient_cache.h).
//
// An array is known by its serial number, which it gets when a tape first sees it, so a value whose
// elements no rule reads need not be kept alive. One thread at a time may use a tape.
//
// In a trace nothing is recorded, for the graph has it all: the tape remembers what is watched there, from
// which node on, and what is hidden from it (traced_tape.cc).
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "kernel/plan/plan.h"
#include "kernel/trace/function.h"
#include "kernel/trace/gradient_cache.h"
#include "kernel/trace/taped.h"

namespace keel {

// From serial numbers to small ones; only grows. Arrays that a thread makes have serials in a row, so theirs
// are places of a list; the others, whose serial may lie between these, are in a hash table.
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
    constexpr uint64_t kGap = 64;  // what others may have made between two of ours
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
  std::vector<uint32_t> row_;  // of serials from first_ on
  std::vector<Entry> slots_;
  size_t mask_ = 0, used_ = 0;
};

class Tape {
 public:
  struct Options {
    bool persistent = false;
    bool watch_variables = true;  // trainable ones, when they are read
  };
  // The device is where gradients run for which nothing was computed. `outer` (or null) records the same,
  // and the gradients.
  Tape(std::shared_ptr<Context> context, Device* device, const Options& options, Tape* outer)
      : context_(std::move(context)), device_(device), outer_(outer), options_(options) {}

  absl::Status Watch(keel_array* array);
  // What is read of it from now on.
  void Watch(const std::shared_ptr<Variable>& variable) { Held(variable).watched = true; }
  // A body begins in a trace: what is computed there while this tape is paused is hidden from all that are
  // around it.
  void Enter(Trace* body);
  // This was read of it just now.
  void Saw(const std::shared_ptr<Variable>& variable, keel_array* value);
  // It was read in a body, where no gradient finds it.
  void Lost(const std::shared_ptr<Variable>& variable);
  // An error if it was, so that what ReadsOf says is not all.
  absl::Status CheckReads(const std::shared_ptr<Variable>& variable);
  // All that was read of it and watched.
  std::span<const ArrayRef> ReadsOf(const std::shared_ptr<Variable>& variable) {
    return Held(variable).reads;
  }
  bool Watches(const keel_array* array) const;
  bool WatchesOrOuter(const keel_array* array) const {
    return Watches(array) || (outer_ && outer_->WatchesOrOuter(array));
  }
  // Operands (null: left out) and results of what was just computed. Nothing if no operand is watched.
  void Record(const std::shared_ptr<const Taped>& what, Device* device, std::span<keel_array* const> in,
              std::span<keel_array* const> out);
  // Null where no y depends on an x, or zeros.
  absl::Status Gradient(const GradientOf& of, Results* out);
  // As Trace::Custom, of what was just computed from arrays with elements (custom.cc).
  absl::Status Custom(const CustomWanted& wanted, std::vector<ArrayRef>* out);
  void Reset();
  void Pause(bool on);  // as often off as on

 private:
  struct Value {
    DType dtype;
    bool watched;
    uint32_t rank, dims_at;
    ArrayRef kept;
  };
  struct Entry {
    uint32_t what, values_at;  // its operands, then its results
    uint16_t n_in, n_out;
    Device* device;
  };
  static constexpr uint32_t kNone = SerialIndex::kNone;

  uint32_t Find(const keel_array* array) const;  // kNone: not recorded, or null
  uint32_t Number(keel_array* array, bool watched, bool fresh = false);
  uint32_t NumberOf(const std::shared_ptr<const Taped>& what);
  struct HeldVariable {
    std::shared_ptr<Variable> variable;  // its address stays its own
    bool watched = false, lost = false;
    std::vector<ArrayRef> reads;
  };
  HeldVariable& Held(const std::shared_ptr<Variable>& variable);
  absl::Status WatchTraced(keel_array* array);
  TraceWatch& Traced(Trace* trace);
  absl::Status WriteGradient(Trace* trace, const GradientOf& of, Results* out);
  absl::Status RunGradient(const GradientOf& of, Results* out);
  Recording Slice(const GradientOf& of) const;
  std::vector<bool> Between(const std::vector<uint32_t>& ys, const std::vector<uint32_t>& xs) const;

  void Forget();
  bool Off() const { return paused_ || (used_ && !options_.persistent); }

  std::shared_ptr<Context> context_;
  Device* device_;
  Tape* outer_;
  Options options_;
  uint32_t paused_ = 0;
  bool used_ = false;
  HashMap<const Variable*, HeldVariable> variables_;
  std::vector<TraceWatch> traces_;
  SerialIndex numbers_;
  std::vector<Value> values_;
  std::vector<int64_t> dims_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> operands_;
  std::vector<std::shared_ptr<const Taped>> whats_;
  HashMap<const Taped*, uint32_t> what_numbers_;
  std::pair<const Taped*, uint32_t> last_what_{nullptr, 0};  // programs repeat themselves
};

}  // namespace keel
