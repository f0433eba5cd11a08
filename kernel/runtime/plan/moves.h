// moves.h: ops that need no device code: on a device with its own memory that has no impl for them, the
// kernel runs them by copies and fills of the compute queue. Their impls are rows like those of a plugin.
#pragma once

#include "kernel/runtime/plan/lowered.h"
#include "kernel/runtime/plan/own_launch.h"
#include "kernel/runtime/plan/run_state.h"
#include "kernel/runtime/plugin/host.h"

namespace keel {

// As ChooseImpl; the kernel's impl if the device has its own memory and no impl.
absl::StatusOr<const Impl*> ChooseImplOrMoves(Device& device, const OpDef& op, const Inferred& inferred,
                                              const NodeView& view, const Impl* after = nullptr);
// Whether the kernel has an impl for the op on devices with their own memory.
bool HasMovesImpl(const OpDef& op);
bool IsMoves(const Step& step);  // whether it has such an impl
std::unique_ptr<OwnLaunch> MakeMoves(const keel_launch& launch, RunState& state);

}  // namespace keel
