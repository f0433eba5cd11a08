// lowered.h: a lowered graph: the steps of a plan for one device, in order, and their values. lower.h makes
// it; it does not change afterwards.
#pragma once

#include <forward_list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "kernel/language/graph/graph.h"
#include "kernel/runtime/plugin/body.h"
#include "kernel/runtime/plugin/registry.h"

namespace keel {

class Accelerator;  // kernel/runtime/device

// A prepared node. The destructor releases the state of the device, unless that was given up: its work may
// still use the state.
struct Launch {
  keel_launch launch{};
  keel_dev dev = nullptr;
  std::shared_ptr<Accelerator> accelerator;  // null: host memory, or a launch of the kernel
  Launch() = default;
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;
  ~Launch();
};

struct Core;             // core.h
struct DeviceConstants;  // device_constants.h

enum class Where : uint8_t { kFeed, kConstant, kComputed, kAlias };

struct PlanValue {
  TensorType type;  // with dims of Lowered::dims
  std::string name;
  Where where = Where::kComputed;
  uint32_t index = 0;  // kFeed: feed number; kConstant: constant number; kAlias: the aliased value
};

struct Lowered;
class Plan;
struct PlannedBody {  // a body with new sizes, as a separate plan (sized_bodies.h)
  std::shared_ptr<Plan> plan;
  uint32_t launches;  // of the plan and all its bodies
};
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
  std::vector<PlannedBody> plans;                   // in the place of bodies
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
  std::shared_ptr<const Lowered> before;   // of which this is a copy (decline.h), with its sources; else null
  bool exact_convolution = false;          // as in the options
  bool new_sizes = false;           // some symbols are known in a run only, so the whole has no binding
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

// Numbers the steps of a plan, then of its bodies, recursively; returns the next free number.
uint32_t NumberSteps(Lowered* lowered, uint32_t first);
uint32_t CountSteps(const Lowered& lowered);
// The step with this number, or null.
const Step* FindStep(const Lowered& lowered, uint32_t number);

// Alignment in bytes of values and scratch in the memory of a run.
uint64_t AlignmentOf(const Lowered& lowered);

}  // namespace keel
