// device_constants.h: the constants of a plan in the memory of its device.
#pragma once

#include <memory>
#include <vector>

#include "kernel/runtime/device/accelerator.h"
#include "kernel/runtime/plan/lowered.h"

namespace keel {

// The constants of a plan on its device: uploaded once, shared by all bindings and runs.
struct DeviceConstants {
  std::shared_ptr<Accelerator> device;
  std::vector<Allocation> pieces;           // by constant; empty if no launch and no fetch reads it
  Batches used;                             // of the uploads
  std::shared_ptr<DeviceConstants> before;  // owns the pieces of the first constants; null: none
  ~DeviceConstants();
};
absl::Status UploadConstants(Lowered* lowered);  // does not wait

}  // namespace keel
