// fold.h: constant folding: steps whose operands are all constants run once, at planning, on the plan's own
// device, so that they cost nothing per run and prepare can prepack their results.
#pragma once

#include "kernel/plan/lower.h"

namespace keel {

bool MentionsSymbols(const Lowered& lowered, const Step& step);
// Whether all operands are constant and the results fit in kMaxFoldedBytes together with *folded_bytes; if
// so, adds their size to *folded_bytes.
bool CanFold(const Lowered& lowered, const Step& step, uint64_t* folded_bytes);
// Runs the step and makes its results constants of the plan.
absl::Status Fold(Lowered& lowered, const Step& step, const PlanOptions& options);
// By constant: whether a step or a fetch reads it. The others are used only by folded steps.
std::vector<bool> NeededConstants(const Lowered& lowered);
// Adds a scalar constant to the plan.
absl::StatusOr<uint32_t> AddLiteral(Lowered& lowered, DType dtype, double value);

}  // namespace keel
