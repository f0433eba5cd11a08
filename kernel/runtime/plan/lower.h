// lower.h: the first half of planning. Lowers a graph with feeds and fetches to a list of steps for a device:
// prunes unneeded nodes, replaces composites that the device has no impl for by their bodies, resolves
// aliases and folds constants. bind.h does the second half, which depends on sizes.
#pragma once

#include <memory>

#include "kernel/runtime/plan/lowered.h"
#include "kernel/runtime/plan/options.h"
#include "kernel/runtime/plan/request.h"

namespace keel {

absl::StatusOr<std::unique_ptr<Lowered>> Lower(const PlanRequest& request, const PlanOptions& options);

}  // namespace keel
