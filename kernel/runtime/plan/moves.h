// moves.h: ops that need no device code: on a device with its own memory that has no impl for them, the
// kernel runs them by copies and fills of the compute queue. Their impls are rows like those of a plugin; a
// launch finds the machine of its run next to its env (RunEnv).
#pragma once

#include "kernel/runtime/plugin/host.h"

namespace keel {

// As ChooseImpl; the kernel's impl if the device has its own memory and no impl.
absl::StatusOr<const Impl*> ChooseImplOrMoves(Device& device, const OpDef& op, const Inferred& inferred,
                                              const NodeView& view, const Impl* after = nullptr);
// Whether the kernel has an impl for the op on devices with their own memory.
bool HasMovesImpl(const OpDef& op);

}  // namespace keel
