// core.h: ops that the kernel runs itself, on the host, whatever the device: those on variables, print and
// assert. A step of one looks like any launch; what it needs of a run is its CoreRun, the launch's state.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernel/plan/printer.h"
#include "kernel/plugin/registry.h"
#include "kernel/values/variable.h"

namespace keel {

struct CoreRun;
struct Step;
struct PlanOptions;
struct Graph;
struct Node;
struct Module;

// What is known when the plan is made.
struct Core {
  keel_rc (*run)(const keel_call* call);  // call->state: a CoreRun
  bool reads = false, writes = false, takes_array = false;
  bool subtract = false;
  std::shared_ptr<Variable> variable;
  size_t number = 0;  // of the variable in its module
  Printer* printer = nullptr;
  int32_t stream = 0;
  int64_t edge = 3;
  std::vector<std::string> text;  // around the operands; of an assertion: its message
};

// One step in one run. An array is held until a write to the variable finds that nobody looks at it any more,
// or to the end of the run. Long graphs have many: all that a run touches lies here, side by side.
struct CoreRun {
  const Core* core = nullptr;
  Variable* variable = nullptr;
  std::span<keel_tensor*> views;  // of values in `array`: what was read, or what is computed to be assigned
  ArrayRef array;
  const CoreRun* shares = nullptr;  // assign: the read whose array it can take as it is
  // Lists, by the second pointer of each:
  CoreRun *over = nullptr, *also_over = nullptr;  // writes: whose arrays nobody looks at any more
  CoreRun *next = nullptr, *also_next = nullptr;  // assign: whose values are computed before the next assign

  bool Computes() const { return core->takes_array && !views.empty(); }  // into an array of its own
  absl::Status MakeArrays();                                             // for this and what is also next
};

bool IsCore(const OpDef& op);
// An error if print's format does not fit its operands.
absl::StatusOr<std::shared_ptr<const Core>> MakeCore(const OpDef& op, const Attrs& attrs, size_t operands,
                                                     const Module& module, Printer* printer);
// For what asks a step for its impl and plugin.
const Impl* CoreImpl();
// The host's memory and nothing else: where core steps of plans for other memories run.
Device* HostDevice();

}  // namespace keel
