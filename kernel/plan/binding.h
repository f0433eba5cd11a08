// binding.h: the second half of planning. A binding gives each symbol of a lowered graph a value: sizes,
// checks, prepared launches, and the place of each value in the arena. A graph without symbols has one
// binding.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "kernel/plan/lower.h"
#include "kernel/plan/step.h"

namespace keel {

struct Storage {
  // kVariable: the array that a step reads; kAssigned: the array that a step assigns to a variable.
  enum Kind : uint8_t { kFeed, kConstant, kArena, kOutput, kVariable, kAssigned } kind = kArena;
  uint64_t place = 0;   // feed, constant, output or step number; offset in the arena
  uint64_t offset = 0;  // in bytes, of a sub-buffer of a feed, constant or output
};

// Steps that run in order, or in parallel (lanes.h), each with scratch memory of its own.
struct Section {
  std::vector<uint32_t> steps;
  bool parallel = false;
};

class Runner;
struct ControlBinding;  // control.h
struct DevicePool;      // device_runner.h

// The memory layout of a run, and the order of its steps.
struct MemoryPlan {
  std::vector<Section> sections;     // all steps; empty: all steps run in order
  std::vector<uint64_t> scratch_at;  // by step; empty without sections
  std::vector<Storage> storage;      // by value: the storage of its root
  std::vector<bool> is_noop;         // by step: its results need no copy (sub_buffers.h); empty: no step is
  std::vector<uint32_t> output_source;  // by fetch: the value to copy from; kNoValue: written in place
  uint64_t arena_bytes = 0, scratch_bytes = 0, output_bytes = 0;
  uint64_t unshared_bytes = 0;  // size of the arena without reuse
  size_t in_place = 0;          // results that took over an operand's memory
};

struct Binding : MemoryPlan {
  Binding();
  ~Binding();
  std::vector<int64_t> symbols;
  std::vector<std::vector<int64_t>> shapes;               // by value
  std::vector<int64_t> counts;                            // of elements, by value
  std::vector<std::shared_ptr<Launch>> launches;          // by step
  std::vector<std::unique_ptr<ControlBinding>> controls;  // by step; null: no control step

  static constexpr size_t kPool = 8;  // idle runners kept; further ones are destroyed after their run
  std::atomic<Runner*> pool[kPool] = {};
  std::unique_ptr<DevicePool> device;  // where the device has memory of its own
};

// The value of each symbol, from the shapes of the feeds. Errors name the parameter, the actual and the
// expected shape. `known`, for a body: the values by symbol that the caller knows; no symbol may stay
// unbound.
using KnownSymbols = std::vector<std::optional<int64_t>>;
absl::StatusOr<std::vector<int64_t>> BindSymbols(const Lowered& lowered,
                                                 std::span<const std::span<const int64_t>> fed,
                                                 const KnownSymbols* known = nullptr);

absl::StatusOr<std::shared_ptr<Binding>> Bind(const Lowered& lowered, std::vector<int64_t> symbols,
                                              const PlanOptions& options);

// memory.cc: completes a plan whose sections and scratch are set.
MemoryPlan PlanMemory(const Lowered& lowered, const PlanOptions& options, const Binding& binding,
                      const MemoryPlan& schedule);

// The alignment of every allocation within the memory of a run, in bytes.
uint64_t AlignmentOf(const Lowered& lowered);
inline uint64_t BytesOf(const Lowered& lowered, const Binding& b, uint32_t v) {
  return static_cast<uint64_t>(b.counts[v]) * SizeOf(lowered.values[v].type.dtype);
}

}  // namespace keel
