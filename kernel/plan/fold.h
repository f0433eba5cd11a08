// fold.h: the constant part of a plan: steps whose operands are all constants run once, at planning, on
// the plan's own device, so that they cost nothing per run and prepare can prepack their results.
#pragma once

#include "kernel/plan/lower.h"

namespace keel {

bool MentionsSymbols(const Lowered& lowered, const Step& step);
// Are all operands constant and the results small enough? Adds to the bytes folded so far if so.
bool CanFold(const Lowered& lowered, const Step& step, uint64_t* folded_bytes);
// Runs the step and makes its results constants of the plan.
absl::Status Fold(Lowered& lowered, const Step& step, const PlanOptions& options);
// By constant: whether a step or a fetch reads it; the others were folded.
std::vector<bool> NeededConstants(const Lowered& lowered);
// A scalar constant of the plan.
absl::StatusOr<uint32_t> AddLiteral(Lowered& lowered, DType dtype, double value);

}  // namespace keel
