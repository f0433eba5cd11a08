// host_op_on_device.h: core ops in bodies whose values are in device memory. The host downloads the operands,
// and uploads the result of a `read`. A download also checks the fault word of all previous launches, so an
// effect only happens if they succeeded.
#pragma once

#include <vector>

#include "kernel/runtime/plan/core.h"
#include "kernel/runtime/plan/own_launch.h"
#include "kernel/runtime/plan/run_state.h"

namespace keel {

class HostOpOnDevice : public OwnLaunch {
 public:
  HostOpOnDevice(CoreRun& core, RunState& state) : core_(core), state_(state) {}
  keel_rc Run(const keel_call& call) override;

 private:
  keel_rc RunCore(const keel_call& call);
  absl::Status Fetch(const keel_call& call);
  absl::Status Store(const keel_call& call);

  CoreRun& core_;
  RunState& state_;
  std::vector<keel_tensor> operands_;  // the device operands, with pointers to host copies
  std::vector<std::vector<char>> bytes_;
};

}  // namespace keel
