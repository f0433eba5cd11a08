// lower.h: the first half of planning: from a graph with feeds and fetches to a list of steps that a
// device can run: pruned, composites without an impl replaced by their bodies, aliases and constant parts
// resolved. A binding (binding.h) adds everything that depends on sizes.
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

// A launch that a device prepared for one node; released by the destructor.
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
  TensorType type;  // dims of the plan's own table
  std::string name;
  Where where = Where::kComputed;
  uint32_t index = 0;  // feed number, constant number, or the value that this is an alias of
};

struct Lowered;
struct Step {  // one launch
  const OpDef* op = nullptr;
  const Impl* impl = nullptr;
  std::string name;
  const std::string* source = nullptr;  // "model.py:12", of Lowered::sources; null: unknown
  std::vector<uint32_t> in, out;        // plan values; kNoValue: omitted
  Attrs attrs;                          // complete; dims symbolic
  std::vector<DType> in_dtypes;
  bool needs_dims = false;                          // prepared for each binding
  std::shared_ptr<Launch> launch;                   // set unless needs_dims
  std::shared_ptr<const Body> body;                 // of a call
  std::vector<std::shared_ptr<const Body>> graphs;  // of a control step that the device runs as one launch
  std::vector<std::shared_ptr<Lowered>> bodies;     // of a control step (control.h), in the order of its op
  std::shared_ptr<const Core> core;                 // of a core step (core.h)
};

struct Lowered {
  std::string name;  // of the graph
  std::shared_ptr<Catalogue> catalogue;
  Device* device = nullptr;
  std::shared_ptr<Accelerator> accelerator;   // null: host memory
  std::shared_ptr<DeviceConstants> uploaded;  // constants there
  DimTable dims;
  std::vector<PlanValue> values;
  std::vector<Step> steps;
  std::vector<Constant> constants;  // used constants, and results of the constant part
  std::vector<uint32_t> feeds, fetches;
  std::vector<Inferred::Check> checks;
  std::forward_list<std::string> sources;  // of steps
  bool exact_convolution = false;          // as in the options
  uint32_t first_step = 0;          // the number of its first step among those of a plan with all bodies
  std::vector<std::string> folded;  // names of nodes that ran once, at planning
  std::vector<uint32_t> value_of;   // of a probe: by value of the graph; kNoValue: not needed
  std::map<NodeId, std::set<std::string>> lacking;  // of a probe: ops that the device cannot run

  // The value that holds the bytes.
  uint32_t Root(uint32_t value) const {
    while (values[value].where == Where::kAlias) value = values[value].index;
    return value;
  }
};

enum class LaneUse : uint8_t { kOff, kAuto, kAll };  // which launches run in parallel (lanes.h)

struct PlanOptions {
  uint32_t threads = 1;
  LaneUse lanes = LaneUse::kAuto;
  uint64_t memory = 0;             // bytes that a run may plan; 0: no limit
  bool observe = false;            // separate memory for each value, no folding, calls inlined
  bool profile = false;            // runs may be observed; the plan is unchanged
  Stopper* stopper = nullptr;      // stops runs
  Printer* printer = nullptr;      // null: the default
  bool strict = false;             // all nodes run, including those of bodies
  bool exact_convolution = false;  // each sum of a convolution depends on its own cells only
  uint32_t timeout_ms = 0;         // of a run; needs the stopper; 0: no limit
  std::shared_ptr<const PassReport> passes = nullptr;  // the passes applied to the graph, for the report
  bool probe = false;                                  // record missing impls instead of returning an error
  bool results_on_device = false;                      // where the device has memory of its own
  std::string prefix;                                  // of the names of a body's steps
  size_t nodes = 0, needed = 0;                        // of the graph before passes, for the report
};

// Checks that each parameter read by the needed nodes or the fetches is fed. Runs before passes, whose
// rewriting would obscure the error.
absl::Status CheckFed(const Graph& graph, std::span<const ValueId> feeds, std::span<const ValueId> fetches,
                      const std::vector<bool>& needed);
absl::StatusOr<std::unique_ptr<Lowered>> Lower(const Graph& graph, Device* device,
                                               std::span<const ValueId> feeds,
                                               std::span<const ValueId> fetches,
                                               std::span<const NodeId> targets, const PlanOptions& options);

// The step as its impl's prepare sees it; dims evaluated with one number per symbol, or -1 where symbolic
// if `symbols` is empty.
absl::StatusOr<keel_node> ViewStep(const Lowered& lowered, const Step& step,
                                   std::span<const int64_t> symbols);
absl::StatusOr<std::shared_ptr<Launch>> Prepare(const Lowered& lowered, const Step& step,
                                                const keel_node& node);

// Constant parts with larger results are computed in each run.
inline constexpr uint64_t kMaxFoldedBytes = uint64_t{2} << 30;

}  // namespace keel
