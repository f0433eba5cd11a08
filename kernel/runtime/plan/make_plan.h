// make_plan.h: plans of graphs, optimised by passes, on one device or on several.
#pragma once

#include <memory>

#include "kernel/runtime/plan/optimize.h"
#include "kernel/runtime/plan/place.h"

namespace keel {

// On the device of the request; effects that only the host can have are parts of the plan on the host.
absl::StatusOr<std::shared_ptr<Plan>> MakePlan(const PlanRequest& request, PlanOptions options,
                                               const Optimizer& optimizer = {});
// With nodes on several devices; each part is optimised for its device.
absl::StatusOr<std::shared_ptr<Plan>> MakePlacedPlan(const PlanRequest& request, const Placing& placing,
                                                     const Optimizer& optimizer, PlanOptions options);

}  // namespace keel
