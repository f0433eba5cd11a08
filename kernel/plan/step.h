// step.h: what runs a single step: its call struct, and one run outside of a plan.
#pragma once

#include <span>

#include "kernel/plan/lower.h"
#include "kernel/values/array.h"

namespace keel {

// Flags and count of a call whose operands and results have these shapes; all are contiguous.
void SetShapeFlags(keel_call* call);

// Of a contiguous tensor.
uint64_t BytesOf(const keel_tensor& t);

// The message with the line of the program behind it, if that is known.
std::string At(const std::string* source, std::string message);
// An error of a step, with its op, node and line.
absl::Status StepError(const absl::Status& status, const Step& step);
// The error of a launch, with node, op and plugin.
absl::Status RunError(const HostCall& call, keel_rc rc, const Step& step);

// The same, with the device where it has memory of its own (others are only called by their plugin's name).
absl::Status NameDevice(const Lowered& lowered, const absl::Status& status);

// The error of a run that was told to stop, after that step: by keel_cancel, or by its time limit.
absl::Status Stopped(const std::string& after, uint32_t timeout_ms = 0);
absl::Status Stopped(const std::string& after, const PlanOptions& options);
// When a run that begins now must have ended; only where there is a limit.
Deadline EndOfRun(const PlanOptions& options, const Deadline* given);

// Gives the memory of the step's mapped constants back to the system until somebody reads them again: most
// are read once, to be packed.
void DropPages(const Lowered& lowered, const Step& step);

// Prepares and runs a step with no symbolic dims on given tensors.
absl::Status RunOnce(const Lowered& lowered, const Step& step, std::span<const keel_tensor* const> in,
                     std::span<keel_tensor* const> out, uint32_t threads);

struct FreeDeleter {
  void operator()(void* p) const { std::free(p); }
};
using Block = std::unique_ptr<char, FreeDeleter>;
// 64-byte aligned; null when there is no memory. 0 bytes give a block too.
Block NewBlock(uint64_t bytes);

}  // namespace keel
