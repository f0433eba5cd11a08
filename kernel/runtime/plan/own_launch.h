// own_launch.h: a launch that the kernel runs itself: control steps (control.h) and, on a device with its own
// memory, host ops in bodies, copies of blocks (moves.h) and launches with parameters.
#pragma once

#include "abi/keel_impl.h"

namespace keel {

class OwnLaunch {
 public:
  virtual ~OwnLaunch() = default;
  virtual keel_rc Run(const keel_call& call) = 0;
  static keel_rc RunCall(const keel_call* call) {  // call->state: an OwnLaunch
    return static_cast<OwnLaunch*>(call->state)->Run(*call);
  }
};

}  // namespace keel
