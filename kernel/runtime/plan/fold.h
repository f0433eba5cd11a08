// fold.h: constant folding: steps whose operands are all constants run once, at planning, so that they cost
// nothing per run and prepare can prepack their results. They run on the plan's own device if it has host
// memory, else on PlanOptions::host: a launch, an upload and a wait for each would make planning slow.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernel/runtime/plan/lowered.h"
#include "kernel/runtime/plan/options.h"

namespace keel {

// Limit of the total size of folded constants; further steps run in each run.
inline constexpr uint64_t kMaxFoldedBytes = uint64_t{2} << 30;

bool MentionsSymbols(const Lowered& lowered, const Step& step);
// Whether all operands are constant and the results fit in kMaxFoldedBytes together with *folded_bytes; if
// so, adds their size to *folded_bytes.
bool CanFold(const Lowered& lowered, const Step& step, uint64_t* folded_bytes);
// Runs the step and makes its results constants of the plan. device: that of the step's impl, with host
// memory.
absl::Status Fold(Lowered& lowered, const Step& step, Device& device, uint32_t threads);
// Folds a step of a plan for a device with its own memory, which need not have an impl for it. False: the
// host cannot compute the step now.
bool FoldOnHost(Lowered& lowered, Step* step, const Inferred& inferred, std::span<const std::string> names,
                const PlanOptions& options, uint64_t* folded_bytes);
// By constant: whether a step or a fetch reads it. The others are used only by folded steps.
std::vector<bool> NeededConstants(const Lowered& lowered);
// Adds a scalar constant to the plan.
absl::StatusOr<uint32_t> AddLiteral(Lowered& lowered, DType dtype, double value);

}  // namespace keel
