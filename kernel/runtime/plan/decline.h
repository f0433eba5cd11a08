// decline.h: steps whose impl declines their dims (KEEL_UNIMPLEMENTED from prepare or run, keel_impl.h).
// The next impl of the device replaces it, else the body of its op or call.
#pragma once

#include "kernel/runtime/plan/lower.h"

namespace keel {

inline constexpr size_t kNoStep = ~size_t{0};

// A copy with the step of that number (NumberSteps) replaced, which may be one of a body; values keep their
// numbers. Unimplemented: the step has no other impl and no body.
absl::StatusOr<std::shared_ptr<Lowered>> ReplaceStep(const std::shared_ptr<const Lowered>& lowered,
                                                     size_t number);

// Prepares the launches that do not depend on sizes, also of bodies; uploads the constants; numbers the
// steps. Steps that are declined are replaced.
absl::Status PrepareSteps(std::shared_ptr<Lowered>* lowered);

}  // namespace keel
