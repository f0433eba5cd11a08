// call.cc: calls of functions, of keel.h: apart from function.cc, as warm calls pass through here.
#include "kernel/api/handles.h"

using namespace keel;

namespace {

absl::Status CallFunction(keel_function* f, keel_trace* within, Tape* tape, const char* structure,
                          std::span<const keel_leaf> leaves, std::span<keel_array*> out, uint32_t* n_out) {
  if (!f || !n_out || (!leaves.data() && !leaves.empty())) [[unlikely]]
    return NeedPointer(nullptr, !f ? "function" : !n_out ? "n_out" : "leaves");
  Results results;
  Arguments arguments{structure ? structure : "", leaves};
  RETURN_IF_ERROR(f->function->Call(within ? &within->tracing : nullptr, tape, arguments, &results));
  if (results.size() > out.size())
    return Invalid("the function gives ", results.size(), " results, got room for ", out.size());
  for (size_t i = 0; i < results.size(); i++) out[i] = results[i].Detach();
  *n_out = static_cast<uint32_t>(results.size());
  return absl::OkStatus();
}

}  // namespace

keel_rc keel_function_call(keel_function* f, keel_trace* within, const char* structure,
                           const keel_leaf* leaves, uint32_t n, keel_array** out, uint32_t room,
                           uint32_t* n_out, keel_error** err) {
  return GuardInline(err, [&] {
    return CallFunction(f, within, nullptr, structure, {leaves, n}, {out, room}, n_out);
  });
}

keel_rc keel_tape_call(keel_tape* t, keel_function* f, const char* structure, const keel_leaf* leaves,
                       uint32_t n, keel_array** out, uint32_t room, uint32_t* n_out, keel_error** err) {
  return keel_tape_call_within(t, f, nullptr, structure, leaves, n, out, room, n_out, err);
}

keel_rc keel_tape_call_within(keel_tape* t, keel_function* f, keel_trace* within, const char* structure,
                              const keel_leaf* leaves, uint32_t n, keel_array** out, uint32_t room,
                              uint32_t* n_out, keel_error** err) {
  return Guard(err, [&]() -> absl::Status {
    RETURN_IF_ERROR(NeedPointer(t, "tape"));
    return CallFunction(f, within, t, structure, {leaves, n}, {out, room}, n_out);
  });
}
