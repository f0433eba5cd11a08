// tape.cc: tapes, of keel.h. keel_tape_apply is in op.cc, keel_tape_call in function.cc.
#include "kernel/trace/tape.h"

#include "kernel/api/handles.h"

using namespace keel;

namespace {

constexpr Option kTapeOptions[] = {
    {"persistent",
     [](void* persistent, const std::string& v) {
       if (v != "0" && v != "1") return Invalid("option \"persistent\": got \"", v, "\", wanted 0 or 1");
       *static_cast<bool*>(persistent) = v == "1";
       return absl::OkStatus();
     }},
};

absl::Status NeedArrays(std::span<keel_array* const> arrays, const char* what) {
  for (size_t i = 0; i < arrays.size(); i++)
    if (!arrays[i]) return Invalid(what, " ", i, " is NULL");
  return absl::OkStatus();
}

}  // namespace

keel_rc keel_tape_new(keel_context* c, const char* device, const keel_kv* options, uint32_t n,
                      keel_tape* outer, keel_tape** out, keel_error** err) {
  return Guard(err, [&]() -> absl::Status {
    RETURN_IF_ERROR(NeedPointer(c, "context"));
    RETURN_IF_ERROR(NeedPointer(device, "device"));
    bool persistent = false;
    RETURN_IF_ERROR(SetOptions(kTapeOptions, options, n, &persistent));
    ASSIGN_OR_RETURN(Device * home, c->state->registry.FindDevice(device));
    *out = new keel_tape{{c->state, home, persistent, outer ? &outer->tape : nullptr}};
    return absl::OkStatus();
  });
}

keel_rc keel_tape_watch(keel_tape* t, keel_array* a, keel_error** err) {
  return Guard(err, [&]() -> absl::Status {
    RETURN_IF_ERROR(NeedPointer(t, "tape"));
    RETURN_IF_ERROR(NeedPointer(a, "array"));
    return t->tape.Watch(a);
  });
}

void keel_tape_pause(keel_tape* t, int32_t on) {
  if (t) t->tape.Pause(on != 0);
}

void keel_tape_reset(keel_tape* t) {
  if (t) t->tape.Reset();
}

keel_rc keel_tape_gradient(keel_tape* t, keel_array* const* ys, uint32_t n_ys, keel_array* const* seeds,
                           keel_array* const* xs, uint32_t n_xs, uint32_t flags, keel_array** out,
                           keel_error** err) {
  return Guard(err, [&]() -> absl::Status {
    RETURN_IF_ERROR(NeedPointer(t, "tape"));
    if (flags & ~KEEL_GRADIENT_ZEROS) return Invalid("gradient: unknown flags ", flags);
    GradientOf<keel_array*> of{{ys, n_ys}, {}, {xs, n_xs}, (flags & KEEL_GRADIENT_ZEROS) != 0};
    if (seeds) of.seeds = {seeds, n_ys};
    RETURN_IF_ERROR(NeedArrays(of.ys, "y"));
    RETURN_IF_ERROR(NeedArrays(of.xs, "x"));
    Results made(n_xs);
    ASSIGN_OR_RETURN(Trace * trace, Trace::OfAll(of.ys));
    if (trace)
      RETURN_IF_ERROR(trace->Gradient(of.ys, of.seeds, of.xs, of.zeros, {made.data(), made.size()}));
    else
      RETURN_IF_ERROR(t->tape.Gradient(of, &made));
    for (uint32_t i = 0; i < n_xs; i++) out[i] = made[i].Detach();
    return absl::OkStatus();
  });
}

void keel_tape_free(keel_tape* t) { delete t; }
