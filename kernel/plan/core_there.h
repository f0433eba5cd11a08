// core_there.h: ops that the host runs, within bodies whose values are in a device's own memory: the host
// fetches the operands, and puts there what is read of a variable. A fetch tells of faults of all that was
// launched before, so an effect only happens if everything before it went well.
#pragma once

#include <vector>

#include "kernel/plan/core.h"
#include "kernel/plan/frame.h"

namespace keel {

class CoreThere {
 public:
  CoreThere(CoreRun& core, RunState& state) : core_(core), state_(state) {}
  static keel_rc Run(const keel_call* call);  // call->state: a CoreThere

 private:
  absl::Status Fetch(const keel_call& call);
  absl::Status Store(const keel_call& call);

  CoreRun& core_;
  RunState& state_;
  std::vector<keel_tensor> operands_;  // as on the device, but for where they are
  std::vector<std::vector<char>> bytes_;
};

}  // namespace keel
