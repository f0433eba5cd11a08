// call.h: one run of a plan. Warm runs are in call.cc; what follows when an impl declined is in session.cc.
#pragma once

#include <span>
#include <utility>

#include "kernel/api/handles.h"
#include "kernel/plan/plan.h"

namespace keel {

struct Operands {
  std::span<keel_array* const> in;
  std::span<keel_array*> out;
};

[[gnu::always_inline]] inline absl::Status RunPlan(Plan& plan, const Operands& of,
                                                   Observer observer = nullptr, void* arg = nullptr) {
  absl::InlinedVector<ArrayRef, 8> results;
  for (size_t i = 0; i < of.out.size(); i++) results.emplace_back();  // mostly one: not worth a memset
  RETURN_IF_ERROR(plan.Run(of.in, {results.data(), results.size()}, observer, arg));
  for (size_t i = 0; i < of.out.size(); i++) of.out[i] = results[i].Detach();
  return absl::OkStatus();
}

// After a run that failed: again, where the session has a fallback, as long as that helps.
absl::Status FallBack(keel_plan& plan, absl::Status status, const Operands& of);

}  // namespace keel
