// sized_bodies.h: call, cond, switch, while and scan with bodies that make new sizes (trim). Such a
// body has no memory that is laid out before the run, so each body is a plan of its own, and the host runs it
// once for each iteration. Operands and results are arrays, which stay on their device except for predicates,
// counts, and the entries of a scan.
//
// How to read it: Lower makes the plans, by PlanOptions::plan_body; RunVariablePart calls RunBodies.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernel/language/values/pending.h"
#include "kernel/runtime/plan/plan.h"

namespace keel {

// One run of a step.
struct BodiesRun {
  const Lowered& lowered;
  const Step& step;
  std::vector<ArrayRef> in;
  std::vector<keel_array*> sizes;       // of the types given to plan_body
  const std::vector<int64_t>& symbols;  // of lowered.dims
  const EventForwarder* events;         // of the part; null: none
  const Deadline* end;                  // of the enclosing run; null: none
};
// The results of the step. Those on a device may still be computed: pending receives their runs.
absl::StatusOr<std::vector<ArrayRef>> RunBodies(BodiesRun run, PendingRuns* pending);

}  // namespace keel
