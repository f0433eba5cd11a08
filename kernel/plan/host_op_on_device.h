// host_op_on_device.h: core ops in bodies whose values are in device memory. The host downloads the operands
// and uploads the value of a variable read. A download also returns the faults of all earlier launches, so an
// effect happens only if every earlier launch succeeded.
#pragma once

#include <vector>

#include "kernel/plan/core.h"
#include "kernel/plan/frame.h"

namespace keel {

class HostOpOnDevice {
 public:
  HostOpOnDevice(CoreRun& core, RunState& state) : core_(core), state_(state) {}
  static keel_rc Run(const keel_call* call);  // call->state: a HostOpOnDevice

 private:
  absl::Status Fetch(const keel_call& call);
  absl::Status Store(const keel_call& call);

  CoreRun& core_;
  RunState& state_;
  std::vector<keel_tensor> operands_;  // copies of the device's operands, in host memory
  std::vector<std::vector<char>> bytes_;
};

}  // namespace keel
