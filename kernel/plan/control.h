// control.h: steps that run bodies: cond, switch, while, scan. Their bodies are plans of their own
// (Step::bodies), bound with the sizes that the step gives them and run inside the run of the step, on its
// scratch memory.
//
// How to read it: BindControl (control_bind.cc) lays out the memory, MakeControl builds the frames,
// RunControl is the launch. Carried values alternate between two buffers, the step's result and a buffer in
// its scratch, so an iteration copies nothing, allocates nothing and takes no lock. On a device with memory
// of its own the host reads only predicates.
#pragma once

#include <memory>
#include <vector>

#include "kernel/plan/frame.h"

namespace keel {

// How the operands of a step are passed to its bodies.
struct BodyLayout {
  size_t skip = 0;          // leading operands that are not passed: the predicate or index
  size_t carry = 0;         // number of carried operands, the first that are passed
  size_t cut = ~size_t{0};  // from this operand on, an iteration gets one entry of the first dim
  size_t behind = 0;        // trailing operands that are not passed: the number of entries
  bool Cut(size_t i) const { return i >= cut; }
  bool OneOf() const { return skip > 0; }  // one of the bodies runs, once
};

constexpr uint64_t kGivenInPlace = ~uint64_t{0};  // instead of an offset: entries are passed without a copy

struct ControlBinding {
  BodyLayout layout;
  std::vector<std::shared_ptr<Binding>> bodies;
  // Offsets in the scratch: of each carried value, then of each cut operand, then of each stacked result.
  std::vector<uint64_t> buffers;
  int64_t length = 0;      // of a scan
  uint64_t flag_at = 0;    // of the predicate of a while
  uint64_t frames_at = 0;  // memory of the bodies, shared because one body runs at a time
  uint64_t bytes = 0;
};

// `binding`: shapes and symbols are set.
absl::StatusOr<std::unique_ptr<ControlBinding>> BindControl(const Lowered& lowered, const Step& step,
                                                            const Binding& binding,
                                                            const PlanOptions& options);

class Control {
 public:
  virtual ~Control() = default;
  virtual keel_rc Run(const keel_call& call) = 0;
};
std::unique_ptr<Control> MakeControl(const Lowered& lowered, const Binding& binding, size_t step,
                                     RunState& state, char* scratch);
keel_rc RunControl(const keel_call* call);  // call->state: a Control

// Numbers all steps, a control step before the steps of its bodies; returns the next number.
uint32_t NumberSteps(Lowered* lowered, uint32_t first);
uint32_t CountSteps(const Lowered& lowered);
// The step with this number, or null.
const Step* FindStep(const Lowered& lowered, uint32_t number);

}  // namespace keel
