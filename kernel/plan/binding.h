// binding.h: the second half of planning. A Binding is a lowered graph with a number for each symbol: sizes,
// checks, prepared launches and the arena offset of each value. A graph without symbols has one binding.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "kernel/plan/lower.h"
#include "kernel/plan/step.h"

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

class Runner;
struct ControlBinding;  // control.h
struct DevicePool;      // device_runner.h

// The schedule of the steps and the storage of all values.
struct MemoryPlan {
  std::vector<Section> sections;     // covers all steps; empty: all steps run in order
  std::vector<uint64_t> scratch_at;  // by step: offset of its scratch; empty without sections
  std::vector<Storage> storage;      // by value: the storage of its root
  std::vector<bool> is_noop;  // by step: its results are already in place (sub_buffers.h); may be empty
  std::vector<uint32_t> output_source;  // by fetch: the value to copy from; kNoValue: written in place
  uint64_t arena_bytes = 0, scratch_bytes = 0, output_bytes = 0;
  uint64_t unshared_bytes = 0;  // size of the arena if no memory were reused
  size_t in_place = 0;          // results that reuse an operand's memory
};

struct Binding : MemoryPlan {
  Binding();
  ~Binding();
  std::vector<int64_t> symbols;
  std::vector<std::vector<int64_t>> shapes;               // by value
  std::vector<int64_t> counts;                            // by value: number of elements
  std::vector<std::shared_ptr<Launch>> launches;          // by step
  std::vector<std::unique_ptr<ControlBinding>> controls;  // by step; null: the step has no bodies

  static constexpr size_t kPool = 8;  // idle runners kept; more threads create more, which are then dropped
  std::atomic<Runner*> pool[kPool] = {};
  std::unique_ptr<DevicePool> device;  // null: host memory
};

// Solves for the number of each symbol, given the shapes of the feeds. Errors name the parameter, its fed
// shape and its type. `known` (for bodies, by symbol): numbers of the enclosing plan; with it, an unsolved
// symbol is an error.
using KnownSymbols = std::vector<std::optional<int64_t>>;
absl::StatusOr<std::vector<int64_t>> BindSymbols(const Lowered& lowered,
                                                 std::span<const std::span<const int64_t>> fed,
                                                 const KnownSymbols* known = nullptr);

absl::StatusOr<std::shared_ptr<Binding>> Bind(const Lowered& lowered, std::vector<int64_t> symbols,
                                              const PlanOptions& options);

// memory.cc: completes `schedule`, whose sections and scratch are set, with the storage of all values.
MemoryPlan PlanMemory(const Lowered& lowered, const PlanOptions& options, const Binding& binding,
                      const MemoryPlan& schedule);

// Alignment in bytes of values and scratch in the memory of a run.
uint64_t AlignmentOf(const Lowered& lowered);
inline uint64_t BytesOf(const Lowered& lowered, const Binding& b, uint32_t v) {
  return static_cast<uint64_t>(b.counts[v]) * SizeOf(lowered.values[v].type.dtype);
}

}  // namespace keel
