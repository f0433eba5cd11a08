// control.h: steps that run bodies: cond, switch, while, scan. Each body is lowered separately
// (Step::bodies), bound with the sizes of the step's operands, and run within the step's launch, on the
// step's scratch memory.
//
// How to read it: BindControl (control_bind.cc) lays out the memory, MakeControl builds the frames,
// RunControl is the launch. Carried values of a loop alternate between two buffers, the step's result and a
// buffer in its scratch, so an iteration copies nothing, allocates nothing and takes no lock. On a device
// with its own memory the host reads only predicates.
#pragma once

#include <memory>
#include <vector>

#include "kernel/plan/frame.h"

namespace keel {

// How the operands of a step map to the inputs of its bodies.
struct BodyLayout {
  size_t skip = 0;                   // leading operands not passed to the bodies: the predicate or index
  size_t carry = 0;                  // number of carried values, the first inputs
  size_t first_sliced = ~size_t{0};  // inputs from here on are one entry of the first dim per iteration
  size_t trailing = 0;               // last operands not passed to the bodies: the number of iterations
  bool IsSliced(size_t i) const { return i >= first_sliced; }
  bool IsBranch() const { return skip > 0; }  // exactly one body runs, once
};

constexpr uint64_t kGivenInPlace = ~uint64_t{0};  // instead of a buffer offset: entries are not copied

struct ControlBinding {
  BodyLayout layout;
  std::vector<std::shared_ptr<Binding>> bodies;
  // Offsets of buffers in the scratch: of carried values, then of sliced operands, then of stacked results.
  std::vector<uint64_t> buffers;
  int64_t length = 0;      // iterations of a scan
  uint64_t flag_at = 0;    // offset of the predicate of a while
  uint64_t frames_at = 0;  // offset of the memory of the bodies, which run one at a time
  uint64_t bytes = 0;      // size of the scratch
};

// Requires the shapes and symbols of `binding` to be set.
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

// Numbers the steps of a plan, then of its bodies, recursively; returns the next free number.
uint32_t NumberSteps(Lowered* lowered, uint32_t first);
uint32_t CountSteps(const Lowered& lowered);
// The step with this number, or null.
const Step* FindStep(const Lowered& lowered, uint32_t number);

}  // namespace keel
