// launch_with_params.h: a launch of a body that has parameters (keel_launch.param_bytes); each execution
// takes new ones.
#pragma once

#include "kernel/runtime/plan/run_state.h"

namespace keel {

class LaunchWithParams {
 public:
  LaunchWithParams(const keel_launch& launch, RunState& state) : launch_(launch), state_(state) {}
  static keel_rc Run(const keel_call* call) {  // call->state: a LaunchWithParams
    auto& mine = *static_cast<LaunchWithParams*>(call->state);
    keel_call own = *call;
    own.state = mine.launch_.state;
    mine.state_.error = mine.state_.machine->TakeParams(mine.launch_.param_bytes, &own);
    return mine.state_.error.ok() ? mine.launch_.run(&own) : static_cast<keel_rc>(mine.state_.error.code());
  }

 private:
  const keel_launch& launch_;  // of the binding
  RunState& state_;
};

}  // namespace keel
