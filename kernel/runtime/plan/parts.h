// parts.h: plans with several parts. Each part is a plan for one device, fed with results of earlier parts.
// Parts::Run (parts_run.cc) runs the parts in order and copies arrays between devices. It does not wait for
// the outcomes of parts on devices, unless a part has effects on the host. make_plan.h makes them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernel/runtime/plan/optimize.h"
#include "kernel/runtime/plan/place.h"

namespace keel {

class SumPlans;  // variable_steps.h

struct Parts final : Placement {
  struct Source {    // of a feed of a part
    bool outside;    // a feed of the plan; else the result of an earlier part
    uint32_t index;  // number of the feed, or slot
    bool used;       // false: only its sizes are read
  };
  struct Part {
    Device* device;
    std::shared_ptr<Plan> plan;
    std::vector<Source> feeds;
    std::vector<uint32_t> results;   // slots
    std::vector<uint32_t> last_use;  // slots to release after this part
    bool variables = false;          // reads and writes variables (variable_steps.h)
    bool effects = false;            // on the host: requires that all earlier parts succeeded
  };
  struct Crossing {  // a value that is copied between memories
    ValueId value;
    std::string from, to;
  };
  struct Row {  // of `keel plan`
    std::string node, op, device, why;
  };
  std::vector<Row> rows;
  std::vector<Crossing> crossings;
  std::vector<uint32_t> value_of;  // by graph value: value of the whole plan's Lowered, for sizes and names
  std::vector<Part> parts;         // empty if all nodes are on one device: the plan itself runs
  std::vector<uint32_t> fetches;   // slots
  uint32_t slots = 0;
  bool results_on_device = false;
  std::unique_ptr<SumPlans> sums;  // of variables

  Parts();
  ~Parts() override;
  absl::Status Run(std::span<keel_array* const> in, std::span<ArrayRef> out, Observer observer, void* arg,
                   const Deadline* end) const override;
  std::vector<const Plan*> Plans() const override;
  void Report(Json& json, const Lowered& whole, const Binding* binding) const override;
};

// Optimises and plans each part for its device. No parts: all nodes are on the device of the request.
absl::StatusOr<std::unique_ptr<Parts>> Split(const PlanRequest& request, std::span<const PlacedNode> placed,
                                             const Optimizer& optimizer, const PlanOptions& options);

}  // namespace keel
