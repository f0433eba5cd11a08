// step.h: the call struct and the errors of a step, and the run of a single step outside of a plan.
#pragma once

#include <span>

#include "kernel/plan/lower.h"
#include "kernel/values/array.h"

namespace keel {

// Sets the flags and the count of a call from the shapes of its operands and results; all are contiguous.
void SetShapeFlags(keel_call* call);

// The size of a contiguous tensor.
uint64_t BytesOf(const keel_tensor& t);

// The message, followed by the source line if it is known.
std::string At(const std::string* source, std::string message);
// An error of a step, with its op, node and line.
absl::Status StepError(const absl::Status& status, const Step& step);
// The error of a launch, with node, op and plugin.
absl::Status RunError(const HostCall& call, keel_rc rc, const Step& step);

// Adds the name of a device with memory of its own to an error; other devices are named by their plugin only.
absl::Status NameDevice(const Lowered& lowered, const absl::Status& status);

// The error of a run stopped after that step by keel_context_cancel or by its time limit.
absl::Status Stopped(const std::string& after, uint32_t timeout_ms = 0);
absl::Status Stopped(const std::string& after, const PlanOptions& options);
// The deadline of a run that begins now; null without a limit.
Deadline EndOfRun(const PlanOptions& options, const Deadline* given);

// Releases the pages of the step's mapped constants, which are reloaded on the next read: most constants are
// read once, to be packed.
void DropPages(const Lowered& lowered, const Step& step);

// Prepares and runs a step with no symbolic dims on given tensors.
absl::Status RunOnce(const Lowered& lowered, const Step& step, std::span<const keel_tensor* const> in,
                     std::span<keel_tensor* const> out, uint32_t threads);

struct FreeDeleter {
  void operator()(void* p) const { std::free(p); }
};
using Block = std::unique_ptr<char, FreeDeleter>;
// 64-byte aligned; null if there is no memory. A block of 0 bytes is not null.
Block NewBlock(uint64_t bytes);

}  // namespace keel
