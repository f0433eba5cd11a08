// step.h: single steps: their preparation, the fields of their call, their errors, and a run outside of a
// plan.
#pragma once

#include <span>

#include "kernel/language/values/array.h"
#include "kernel/runtime/plan/lowered.h"
#include "kernel/runtime/plan/options.h"
#include "kernel/runtime/plan/stop.h"
#include "kernel/runtime/plugin/host.h"

namespace keel {

// Sets the flags and the count of a call from the shapes of its operands and results, which must be
// contiguous.
void SetShapeFlags(keel_call* call);

// Size of a contiguous tensor.
uint64_t BytesOf(const keel_tensor& t);

// Appends the source location to the message, if it is known.
std::string WithSource(const std::string* source, std::string message);
// Adds the op, node and source location of the step to an error.
absl::Status StepError(const absl::Status& status, const Step& step);
// The error of a failed launch, with node, op and plugin.
absl::Status RunError(const HostCall& call, keel_rc rc, const Step& step);

// Adds the name of the device if it has its own memory; for host devices the plugin's name is sufficient.
absl::Status NameDevice(const Lowered& lowered, const absl::Status& status);

// Fails for a branch that does not exist, or for more elements or iterations than there can be.
absl::Status CheckBranch(int64_t index, size_t branches);
absl::Status CheckCount(int64_t count, int64_t most);

// The error of a run stopped after the step `after`: cancelled, or by its time limit if timeout_ms > 0.
absl::Status Stopped(const std::string& after, uint32_t timeout_ms = 0);
absl::Status Stopped(const std::string& after, const PlanOptions& options);
// The deadline of a run that begins now: `given` if not null. Requires options.timeout_ms > 0 otherwise.
Deadline EndOfRun(const PlanOptions& options, const Deadline* given);

// Releases the pages of the step's mapped constants until the next read; most constants are read only once,
// by `prepare`.
void DropPages(const Lowered& lowered, const Step& step);

// The view of the step for its impl's `prepare`. Dims are evaluated with `symbols`, one number per symbol; if
// it is empty, symbolic dims are -1.
absl::StatusOr<keel_node> ViewStep(const Lowered& lowered, const Step& step,
                                   std::span<const int64_t> symbols);
// device: that of the step's impl.
absl::StatusOr<std::shared_ptr<Launch>> Prepare(const Lowered& lowered, const Step& step, Device& device,
                                                const keel_node& node);

// Prepares and runs a step without symbolic dims. device: that of its impl, with host memory.
absl::Status RunOnce(const Lowered& lowered, const Step& step, Device& device, uint32_t threads,
                     std::span<const keel_tensor* const> in, std::span<keel_tensor* const> out);

struct FreeDeleter {
  void operator()(void* p) const { std::free(p); }
};
using Block = std::unique_ptr<char, FreeDeleter>;
// A 64-byte aligned block, also for 0 bytes; null if memory is exhausted.
Block NewBlock(uint64_t bytes);

}  // namespace keel
