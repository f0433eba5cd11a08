// core.h: core ops, which the kernel runs on the host for every device: variable ops, print and assert. A
// core step is launched like any other step; its CoreRun, the state of the launch, holds its data for one
// run.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernel/language/values/variable.h"
#include "kernel/runtime/plan/printer.h"
#include "kernel/runtime/plugin/registry.h"

namespace keel {

struct CoreRun;
struct Step;
struct PlanOptions;
struct Graph;
struct Node;
struct Module;

// The parts of a core step that are fixed at planning.
struct Core {
  keel_rc (*run)(const keel_call* call);  // call->state: a CoreRun
  bool reads = false, writes = false, takes_array = false;
  bool subtract = false;
  std::shared_ptr<Variable> variable;
  size_t number = 0;           // index of the variable in its module
  Printer* printer = nullptr;  // null: without a hook
  int32_t stream = 0;
  int64_t edge = 3;
  std::vector<std::string> text;  // print: the text around the operands; assert: the message
};

// A core step in one run. Its array is released at the first write to the variable after the array's last
// use, or at the end of the run. The CoreRuns of a frame are contiguous, because long graphs have many.
struct CoreRun {
  const Core* core = nullptr;
  Variable* variable = nullptr;
  std::span<keel_tensor*> views;  // of values in `array`: the value read, or the value to be assigned
  ArrayRef array;
  const CoreRun* shares = nullptr;  // assign: the read whose array it can assign without a copy
  // Intrusive lists: a head, and the link to the next element.
  CoreRun *releases = nullptr, *next_released = nullptr;    // write: runs whose arrays it releases
  CoreRun *allocates = nullptr, *next_allocated = nullptr;  // assign: runs whose arrays it allocates

  // Whether the assigned value is computed into a separate array, which the variable then takes.
  bool Computes() const { return core->takes_array && !views.empty(); }
  absl::Status MakeArrays();  // for this and the following runs of its list
};

bool IsCore(const OpDef& op);
bool IsVariableOp(const OpDef& op);  // a core op on a variable
// Fails if the format of a print does not match its operands.
absl::StatusOr<std::shared_ptr<const Core>> MakeCore(const OpDef& op, const Attrs& attrs, size_t operands,
                                                     const Module& module, Printer* printer);
// The placeholder impl of core and control steps, so that each step has an impl and a plugin.
const Impl* CoreImpl();

// What core steps use of their context. The devices have no impls, because these steps need none.
struct CoreServices {
  CoreServices();
  Device host;       // runs the core steps of plans for devices with their own memory
  Device variables;  // passes arrays on: of variables, trimmed ones, of bodies (variable_steps.h)
  Printer printer;
};

}  // namespace keel
