// options.h: the options of a plan and of its runs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace keel {

class Device;
class Stopper;        // stop.h
struct CoreServices;  // core.h
struct Graph;
struct PlannedBody;  // lowered.h
struct TensorType;
struct PassReport;  // kernel/runtime/pass/pass.h

enum class LaneUse : uint8_t { kOff, kAuto, kAll };  // which launches run in parallel (lanes.h)

struct PlanOptions {
  uint32_t threads = 1;
  LaneUse lanes = LaneUse::kAuto;
  uint64_t memory = 0;             // limit of arena, scratch and results of a run in bytes; 0: no limit
  bool observe = false;            // no memory reuse, no constant folding, calls inlined
  bool profile = false;            // allows observers of runs without changing the plan
  Device* host = nullptr;          // folds constants for devices with their own memory; null: nothing folds
  Stopper* stopper = nullptr;      // stops runs (stop.h); null: runs cannot be stopped
  CoreServices* core = nullptr;    // required for devices with their own memory
  bool strict = false;             // also run nodes of bodies whose results are unused
  bool exact_convolution = false;  // each output of a convolution reads only its own window: no Winograd
  uint32_t timeout_ms = 0;         // time limit of a run; requires the stopper; 0: no limit
  std::shared_ptr<const PassReport> passes = nullptr;  // of the passes before planning, for the report
  bool probe = false;                                  // collect missing impls instead of failing
  bool results_on_device = false;                      // if the device has its own memory
  bool eager = false;                                  // a run leaves its batch open for the next one
  // For control ops with new sizes in their bodies (sized_bodies.h): makes a plan of a body on
  // `bodies`.
  absl::StatusOr<PlannedBody> (*plan_body)(const Graph& body, std::span<const TensorType> sizes,
                                           const PlanOptions& options) = nullptr;
  Device* bodies = nullptr;
  std::string prefix;            // of step names, for steps of a body
  size_t nodes = 0, needed = 0;  // node counts of the original graph, for the report
};

}  // namespace keel
