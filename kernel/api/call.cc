// call.cc: function calls and plan runs (keel.h). This is the hot path, so it is separate from
// function.cc and session.cc.
#include "kernel/api/call.h"

using namespace keel;

namespace {

absl::Status CallFunction(keel_function* f, keel_trace* within, Tape* tape, const char* structure,
                          std::span<const keel_leaf> leaves, std::span<keel_array*> out, uint32_t* n_out) {
  Results results;
  Arguments arguments{structure ? structure : "", leaves, out.size()};
  RETURN_IF_ERROR(f->function->Call(within ? &within->tracing : nullptr, tape, arguments, &results));
  if (results.size() > out.size()) [[unlikely]]
    return NoRoom("the function", results.size(), out.size());
  for (size_t i = 0; i < results.size(); i++) out[i] = results[i].Detach();
  *n_out = static_cast<uint32_t>(results.size());
  return absl::OkStatus();
}

}  // namespace

keel_rc keel_function_call(keel_function* f, keel_trace* within, keel_tape* tape, const char* structure,
                           const keel_leaf* leaves, uint32_t n, keel_array** out, uint32_t room,
                           uint32_t* n_out, keel_error** err) {
  return GuardInline(err, [&]() -> absl::Status {
    if (NeedsCheck(n | room, f, leaves, out, n_out)) [[unlikely]]
      RETURN_IF_ERROR(CheckGiven("keel_function_call", "function leaves[n] out[room] n_out",
                                 {f, leaves, n, out, room, n_out}));
    return CallFunction(f, within, tape, structure, {leaves, n}, {out, room}, n_out);
  });
}

// Entries are checked here, apart from the hot path.
[[gnu::cold, gnu::noinline]] static absl::Status AfterFailure(keel_plan& plan, absl::Status status,
                                                              const Operands& operands) {
  absl::Status given =
      CheckGiven("keel_plan_run", "plan in[n_in]*", {&plan, operands.in.data(), operands.in.size()});
  if (!given.ok()) return Annotate(given, kErrorHint, status.message());
  return FallBack(plan, std::move(status), operands);
}

keel_rc keel_plan_run(keel_plan* p, keel_array* const* in, uint32_t n_in, keel_array** out, uint32_t n_out,
                      keel_error** err) {
  return GuardInline(err, [&]() -> absl::Status {
    if (NeedsCheck(n_in | n_out, p, in, out)) [[unlikely]]
      RETURN_IF_ERROR(CheckGiven("keel_plan_run", "plan in[n_in] out[n_out]", {p, in, n_in, out, n_out}));
    const Operands operands{{in, n_in}, {out, n_out}};
    absl::Status status = RunPlan(*p->plan.load(std::memory_order_acquire), operands);
    return status.ok() ? absl::OkStatus() : AfterFailure(*p, std::move(status), operands);
  });
}
