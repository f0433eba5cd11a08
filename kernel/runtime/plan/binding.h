// binding.h: a lowered graph with a number for each symbol: sizes, prepared launches and the arena offset of
// each value. bind.h makes it. A graph without symbols has one binding.
#pragma once

#include <memory>
#include <vector>

#include "kernel/runtime/plan/lowered.h"

namespace keel {

struct Storage {
  // kVariable: the array read by a `read` step; kAssigned: a new array that an `assign` step moves into its
  // variable.
  enum Kind : uint8_t { kFeed, kConstant, kArena, kOutput, kVariable, kAssigned } kind = kArena;
  uint64_t place = 0;   // kArena: the offset in bytes; else the number of the feed, constant, output or step
  uint64_t offset = 0;  // in bytes, within a feed, constant or output
};

// A run of steps, executed in order or in parallel (lanes.h). Parallel steps have separate scratch memory.
struct Section {
  std::vector<uint32_t> steps;
  bool parallel = false;
};

inline constexpr uint64_t kParamAlign = 16;  // of keel_call.params

struct Binding;
struct DevicePool;  // device_runner.h

// How the operands of a step map to the inputs of its bodies.
struct BodyLayout {
  size_t skip = 0;                   // leading operands not passed to the bodies: the predicate or index
  size_t carry = 0;                  // number of carried values, the first inputs
  size_t first_sliced = ~size_t{0};  // inputs from here on are one entry of the first dim per iteration
  size_t trailing = 0;               // last operands not passed to the bodies: the number of iterations
  bool IsSliced(size_t i) const { return i >= first_sliced; }
  bool IsBranch() const { return skip > 0; }  // exactly one body runs, once
};

BodyLayout LayoutOf(const Step& step);  // bind_control.cc

constexpr uint64_t kGivenInPlace = ~uint64_t{0};  // instead of a buffer offset: entries are not copied

// The bindings of the bodies of a control step (control.h), and the layout of its scratch.
struct ControlBinding {
  BodyLayout layout;
  std::vector<std::shared_ptr<Binding>> bodies;
  // Offsets of buffers in the scratch: of carried values, then of sliced operands, then of stacked results.
  std::vector<uint64_t> buffers;
  int64_t length = 0;      // iterations of a scan
  uint64_t flag_at = 0;    // offset of the predicate of a while
  uint64_t frames_at = 0;  // offset of the memory of the bodies, which run one at a time
  uint64_t bytes = 0;      // size of the scratch
};

// The schedule of the steps and the storage of all values.
struct MemoryPlan {
  std::vector<Section> sections;     // covers all steps; empty: all steps run in order
  std::vector<uint64_t> scratch_at;  // by step: offset of its scratch; empty: all share one block
  std::vector<Storage> storage;      // by value: the storage of its root
  std::vector<bool> is_noop;  // by step: its results are already in place (sub_buffers.h); may be empty
  std::vector<uint32_t> output_source;  // by fetch: the value to copy from; kNoValue: written in place
  uint64_t arena_bytes = 0, scratch_bytes = 0, output_bytes = 0;
  uint64_t unshared_bytes = 0;  // size of the arena if no memory were reused
  size_t in_place = 0;          // results that reuse an operand's memory
};

struct Binding : MemoryPlan {
  std::shared_ptr<Lowered> own;  // replaces that of the plan if impls declined these sizes; else null
  std::vector<int64_t> symbols;
  std::vector<std::vector<int64_t>> shapes;               // by value
  std::vector<int64_t> counts;                            // by value: number of elements
  std::vector<std::shared_ptr<Launch>> launches;          // by step
  std::vector<std::unique_ptr<ControlBinding>> controls;  // by step; null: the step has no bodies
  struct Order {
    uint32_t number, depends;  // of keel_call
  };
  std::vector<Order> order;  // by step (order.h); empty: each launch comes after all work before it

  std::shared_ptr<DevicePool> device;  // null: host memory
};

// Size of a value in bytes.
inline uint64_t BytesOf(const Lowered& lowered, const Binding& b, uint32_t v) {
  return BytesOf(lowered.values[v].type.dtype, b.counts[v]);
}

}  // namespace keel
