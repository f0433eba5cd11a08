// call.h: one run of a plan. Warm runs are in call.cc; reruns after an impl declined are in session.cc.
#pragma once

#include <span>
#include <utility>

#include "kernel/api/handles.h"
#include "kernel/runtime/plan/plan.h"

namespace keel {

struct Operands {
  std::span<keel_array* const> in;
  std::span<keel_array*> out;
};

[[gnu::always_inline]] inline absl::Status RunPlan(Plan& plan, const Operands& of,
                                                   Observer observer = nullptr, void* arg = nullptr) {
  absl::InlinedVector<ArrayRef, 8> results;
  for (size_t i = 0; i < of.out.size(); i++) results.emplace_back();  // usually one: cheaper than a memset
  RETURN_IF_ERROR(plan.Run(of.in, {results.data(), results.size()}, observer, arg));
  for (size_t i = 0; i < of.out.size(); i++) of.out[i] = results[i].Detach();
  return absl::OkStatus();
}

// Reruns a failed run if the session has fallbacks, until it succeeds or no more nodes can move.
absl::Status FallBack(keel_plan& plan, absl::Status status, const Operands& of);

}  // namespace keel
