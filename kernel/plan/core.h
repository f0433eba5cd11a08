// core.h: core ops, which the kernel runs itself on the host for every device: variable ops, print and
// assert. Their steps look like any launch; the state of the launch is a CoreRun.
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

// A core step of a plan, independent of runs.
struct Core {
  keel_rc (*run)(const keel_call* call);  // call->state: a CoreRun
  bool reads = false, writes = false, takes_array = false;
  bool subtract = false;
  std::shared_ptr<Variable> variable;
  size_t number = 0;  // of the variable in its module
  Printer* printer = nullptr;
  int32_t stream = 0;
  int64_t edge = 3;
  std::vector<std::string> text;  // print: the pieces around the operands; assert: the message
};

// One step in one run. It holds its array until the first write to the variable after the array's last use,
// or to the end of the run. Long graphs have many core steps, so all data of a run is here, contiguous in
// memory.
struct CoreRun {
  const Core* core = nullptr;
  Variable* variable = nullptr;
  std::span<keel_tensor*> views;  // of values in `array`, which is read or will be assigned
  ArrayRef array;
  const CoreRun* shares = nullptr;  // assign: the read whose array is assigned without a copy
  // Linked lists: the head is in the first pointer, the second pointer links the elements.
  CoreRun *over = nullptr, *also_over = nullptr;  // writes: steps whose arrays have no later use
  CoreRun *next = nullptr, *also_next = nullptr;  // assign: steps that compute before the next assign

  bool Computes() const { return core->takes_array && !views.empty(); }  // into an array of its own
  absl::Status MakeArrays();                                             // for this and its also_next list
};

bool IsCore(const OpDef& op);
// An error if print's format does not fit its operands.
absl::StatusOr<std::shared_ptr<const Core>> MakeCore(const OpDef& op, const Attrs& attrs, size_t operands,
                                                     const Module& module, Printer* printer);
// The impl and plugin of core steps, for messages and reports.
const Impl* CoreImpl();
// A device with host memory and no impls; core steps of plans for other devices run on it.
Device* HostDevice();

}  // namespace keel
