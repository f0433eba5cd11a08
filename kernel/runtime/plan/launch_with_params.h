// launch_with_params.h: a launch on a device that has parameters (keel_launch.param_bytes); each execution
// takes new ones.
#pragma once

#include "kernel/runtime/plan/own_launch.h"
#include "kernel/runtime/plan/run_state.h"

namespace keel {

class LaunchWithParams : public OwnLaunch {
 public:
  LaunchWithParams(const keel_launch& launch, RunState& state) : launch_(launch), state_(state) {}
  keel_rc Run(const keel_call& call) override {
    keel_call own = call;
    own.state = launch_.state;
    state_.error = state_.machine->TakeParams(launch_.param_bytes, &own);
    return state_.error.ok() ? launch_.run(&own) : static_cast<keel_rc>(state_.error.code());
  }

 private:
  const keel_launch& launch_;  // of the binding
  RunState& state_;
};

}  // namespace keel
