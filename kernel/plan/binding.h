// binding.h: the second half of planning: a lowered graph with a number for each symbol: sizes, checks,
// prepared launches, and where in the arena each value lives. A graph without symbols has one binding.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "kernel/plan/lower.h"
#include "kernel/plan/step.h"

namespace keel {

struct Storage {
  // kVariable: the array that a step reads; kAssigned: one that a step gives to a variable.
  enum Kind : uint8_t { kFeed, kConstant, kArena, kOutput, kVariable, kAssigned } kind = kArena;
  uint64_t place = 0;   // feed, constant, output or step number; offset in the arena
  uint64_t offset = 0;  // of a part of a feed, constant or output: in bytes
};

// Steps one by one, or side by side (lanes.h): then each has scratch memory of its own.
struct Section {
  std::vector<uint32_t> steps;
  bool beside = false;
};

class Runner;
struct ControlBinding;  // control.h
struct DevicePool;      // device_runner.h

// Where everything lies while the steps run, in that order.
struct MemoryPlan {
  std::vector<Section> sections;     // all steps; none: in order, one by one
  std::vector<uint64_t> scratch_at;  // by step, where there are sections
  std::vector<Storage> storage;      // by value; that of its root
  std::vector<bool> still;           // by step: its results lie where they are (inside.h); none: no step's do
  std::vector<uint32_t> output_source;  // by fetch: kNoValue: written in place; else the value to copy from
  uint64_t arena_bytes = 0, scratch_bytes = 0, output_bytes = 0;
  uint64_t unshared_bytes = 0;  // what the arena would be without reuse
  size_t in_place = 0;          // results that took over an operand's memory
};

struct Binding : MemoryPlan {
  Binding();
  ~Binding();
  std::vector<int64_t> symbols;
  std::vector<std::vector<int64_t>> shapes;               // by value
  std::vector<int64_t> counts;                            // of elements, by value
  std::vector<std::shared_ptr<Launch>> launches;          // by step
  std::vector<std::unique_ptr<ControlBinding>> controls;  // by step; null: it runs no bodies

  static constexpr size_t kPool = 8;  // runners kept; more are made when more threads run, and dropped
  std::atomic<Runner*> pool[kPool] = {};
  std::unique_ptr<DevicePool> device;  // where the device has memory of its own
};

// From the shapes that were fed: the number of each symbol. Errors name the parameter, what was got and
// wanted. `known` (by symbol, of a body): what is known already; there no symbol may stay open.
using KnownSymbols = std::vector<std::optional<int64_t>>;
absl::StatusOr<std::vector<int64_t>> BindSymbols(const Lowered& lowered,
                                                 std::span<const std::span<const int64_t>> fed,
                                                 const KnownSymbols* known = nullptr);

absl::StatusOr<std::shared_ptr<Binding>> Bind(const Lowered& lowered, std::vector<int64_t> symbols,
                                              const PlanOptions& options);

// memory.cc: fills in the rest of a plan whose sections and scratch are set.
MemoryPlan PlanMemory(const Lowered& lowered, const PlanOptions& options, const Binding& binding,
                      const MemoryPlan& schedule);

// Of everything in the memory of a run, in bytes.
uint64_t AlignmentOf(const Lowered& lowered);
inline uint64_t BytesOf(const Lowered& lowered, const Binding& b, uint32_t v) {
  return static_cast<uint64_t>(b.counts[v]) * SizeOf(lowered.values[v].type.dtype);
}

}  // namespace keel
