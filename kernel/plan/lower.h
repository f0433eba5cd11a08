// lower.h: the first half of planning. Lowers a graph with feeds and fetches to a list of steps for a device:
// prunes unneeded nodes, replaces composites that the device has no impl for by their bodies, resolves
// aliases and folds constants. binding.h does the second half, which depends on sizes.
#pragma once

#include <forward_list>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "kernel/graph/graph.h"
#include "kernel/pass/pass.h"
#include "kernel/plan/core.h"
#include "kernel/plan/stop.h"
#include "kernel/plugin/body.h"
#include "kernel/plugin/host.h"
#include "kernel/plugin/registry.h"

namespace keel {

// A prepared node. The destructor releases the state of the device.
struct Launch {
  keel_launch launch{};
  keel_dev dev = nullptr;
  Launch() = default;
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;
  ~Launch() {
    if (launch.release) launch.release(dev, launch.state);
  }
};

class Accelerator;       // kernel/device
struct DeviceConstants;  // device_runner.h

enum class Where : uint8_t { kFeed, kConstant, kComputed, kAlias };

struct PlanValue {
  TensorType type;  // with dims of Lowered::dims
  std::string name;
  Where where = Where::kComputed;
  uint32_t index = 0;  // kFeed: feed number; kConstant: constant number; kAlias: the aliased value
};

struct Lowered;
struct Step {  // one launch
  const OpDef* op = nullptr;
  const Impl* impl = nullptr;
  std::string name;
  const std::string* source = nullptr;  // "model.py:12", in Lowered::sources; null: unknown
  std::vector<uint32_t> in, out;        // plan values; kNoValue: omitted operand
  Attrs attrs;                          // with defaults; dims may be symbolic
  std::vector<DType> in_dtypes;
  bool needs_dims = false;                          // must be prepared for each binding
  std::shared_ptr<Launch> launch;                   // shared by all bindings; null if needs_dims
  std::shared_ptr<const Body> body;                 // of a call
  std::vector<std::shared_ptr<const Body>> graphs;  // bodies of a control step that has a device impl
  std::vector<std::shared_ptr<Lowered>> bodies;     // of other control steps (control.h), in the op's order
  std::shared_ptr<const Core> core;                 // of a core step; null: a launch of the device
};

struct Lowered {
  std::string name;  // of the graph
  std::shared_ptr<Catalogue> catalogue;
  Device* device = nullptr;
  std::shared_ptr<Accelerator> accelerator;   // null: host memory
  std::shared_ptr<DeviceConstants> uploaded;  // constants in the accelerator's memory
  DimTable dims;
  std::vector<PlanValue> values;
  std::vector<Step> steps;
  std::vector<Constant> constants;  // used constants and results of constant folding
  std::vector<uint32_t> feeds, fetches;
  std::vector<Inferred::Check> checks;
  std::forward_list<std::string> sources;  // Step::source points here
  bool exact_convolution = false;          // as in the options
  uint32_t first_step = 0;          // number of the first step, counted over the plan and all its bodies
  std::vector<std::string> folded;  // names of nodes folded at planning
  std::vector<uint32_t> value_of;   // probes only: by graph value, its plan value; kNoValue: not needed
  std::map<NodeId, std::set<std::string>> lacking;  // probes only: ops that the device cannot run

  // The value that owns the memory of `value`, after all aliases.
  uint32_t Root(uint32_t value) const {
    while (values[value].where == Where::kAlias) value = values[value].index;
    return value;
  }
};

enum class LaneUse : uint8_t { kOff, kAuto, kAll };  // which launches run in parallel (lanes.h)

struct PlanOptions {
  uint32_t threads = 1;
  LaneUse lanes = LaneUse::kAuto;
  uint64_t memory = 0;             // limit of arena, scratch and results of a run in bytes; 0: no limit
  bool observe = false;            // no memory reuse, no constant folding, calls inlined
  bool profile = false;            // allows observers of runs without changing the plan
  Device* host = nullptr;          // folds constants for devices with their own memory; null: nothing folds
  Stopper* stopper = nullptr;      // stops runs (stop.h); null: runs cannot be stopped
  Printer* printer = nullptr;      // null: the default
  bool strict = false;             // also run nodes of bodies whose results are unused
  bool exact_convolution = false;  // each output of a convolution reads only its own window: no Winograd
  uint32_t timeout_ms = 0;         // time limit of a run; requires the stopper; 0: no limit
  std::shared_ptr<const PassReport> passes = nullptr;  // of the passes before planning, for the report
  bool probe = false;                                  // collect missing impls instead of failing
  bool results_on_device = false;                      // if the device has its own memory
  bool eager = false;                                  // a run leaves its batch open for the next one
  std::string prefix;                                  // of step names, for steps of a body
  size_t nodes = 0, needed = 0;                        // node counts of the original graph, for the report
};

// Fails unless all parameters that the needed nodes and the fetches use are fed. Called before passes and
// devices receive the graph.
absl::Status CheckFed(const Graph& graph, std::span<const ValueId> feeds, std::span<const ValueId> fetches,
                      const std::vector<bool>& needed);
absl::StatusOr<std::unique_ptr<Lowered>> Lower(const Graph& graph, Device* device,
                                               std::span<const ValueId> feeds,
                                               std::span<const ValueId> fetches,
                                               std::span<const NodeId> targets, const PlanOptions& options);

// The view of the step for its impl's `prepare`. Dims are evaluated with `symbols`, one number per symbol; if
// it is empty, symbolic dims are -1.
absl::StatusOr<keel_node> ViewStep(const Lowered& lowered, const Step& step,
                                   std::span<const int64_t> symbols);
// device: that of the step's impl.
absl::StatusOr<std::shared_ptr<Launch>> Prepare(const Lowered& lowered, const Step& step, Device& device,
                                                const keel_node& node);

// Limit of the total size of folded constants; further steps run in each run.
inline constexpr uint64_t kMaxFoldedBytes = uint64_t{2} << 30;

}  // namespace keel
