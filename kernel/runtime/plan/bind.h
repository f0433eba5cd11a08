// bind.h: the second half of planning: makes the binding of a lowered graph for given sizes.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernel/runtime/plan/binding.h"
#include "kernel/runtime/plan/options.h"

namespace keel {

// Solves for the number of each symbol, given the shapes of the feeds. Errors name the parameter, its fed
// shape and its type. `known` (for bodies, by symbol): numbers of the enclosing plan; with it, an unsolved
// symbol is an error.
using KnownSymbols = std::vector<std::optional<int64_t>>;
absl::StatusOr<std::vector<int64_t>> BindSymbols(const Lowered& lowered,
                                                 std::span<const std::span<const int64_t>> fed,
                                                 const KnownSymbols* known = nullptr);

// declined: set to the number of a step whose impl does not support these sizes (NumberSteps).
absl::StatusOr<std::shared_ptr<Binding>> Bind(const Lowered& lowered, std::vector<int64_t> symbols,
                                              const PlanOptions& options, size_t* declined);

// memory.cc: completes `schedule`, whose sections and scratch are set, with the storage of all values.
MemoryPlan PlanMemory(const Lowered& lowered, const PlanOptions& options, const Binding& binding,
                      const MemoryPlan& schedule);

// bind_control.cc: requires the shapes and symbols of `binding` to be set.
absl::StatusOr<std::unique_ptr<ControlBinding>> BindControl(const Lowered& lowered, const Step& step,
                                                            const Binding& binding,
                                                            const PlanOptions& options, size_t* declined);

}  // namespace keel
