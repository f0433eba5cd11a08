// tape.cc: tapes (keel.h). keel_trace_apply is in op.cc, keel_function_call in call.cc.
#include "kernel/program/trace/tape.h"

#include "kernel/api/handles.h"
#include "kernel/api/options.h"

using namespace keel;

namespace {

// The arrays of each x. Of a variable: its recorded reads, or its current value, which is not on the tape, if
// there is none.
struct Sources {
  std::vector<ArrayRef> arrays;
  std::vector<uint32_t> to;
  void Add(uint32_t x, std::span<const ArrayRef> more) {
    arrays.insert(arrays.end(), more.begin(), more.end());
    to.resize(arrays.size(), x);
  }
};

absl::StatusOr<Sources> SourcesOf(Tape& tape, keel_array* const* xs, keel_variable* const* variables,
                                  uint32_t n, const Trace* trace) {
  Sources sources;
  for (uint32_t i = 0; i < n; i++) {
    ArrayRef array;
    if (xs && xs[i]) {
      array = ArrayRef::Share(xs[i]);
    } else if (variables && variables[i]) {
      RETURN_IF_ERROR(tape.CheckReads(variables[i]->storage));
      std::vector<ArrayRef> reads;  // other reads are of enclosing or inner bodies
      for (const ArrayRef& read : tape.ReadsOf(variables[i]->storage))
        if (Trace::Of(read.get()) == trace) reads.push_back(read);
      sources.Add(i, reads);
      if (!reads.empty()) continue;
      array = variables[i]->storage->Read();
    } else {
      return Invalid("keel_tape_gradient: 'xs[", i, "]' is NULL, and so is 'variables[", i, "]'");
    }
    sources.Add(i, {&array, 1});
  }
  return sources;
}

}  // namespace

keel_rc keel_tape_new(keel_context* c, const char* device, const keel_kv* options, uint32_t n,
                      keel_tape* outer, keel_tape** out, keel_error** err) {
  return Guard(err, "context device options[n_options] out", {c, device, options, n, out},
               [&]() -> absl::Status {
                 Tape::Options wanted;
                 RETURN_IF_ERROR(SetOptions({Option::Flag("persistent", &wanted.persistent),
                                             Option::Flag("watch_variables", &wanted.watch_variables)},
                                            options, n));
                 ASSIGN_OR_RETURN(Device * home, c->state->registry.FindDevice(device));
                 *out = new keel_tape(c->state, home, wanted, outer);
                 return absl::OkStatus();
               });
}

keel_rc keel_tape_watch(keel_tape* t, keel_array* a, keel_variable* v, keel_error** err) {
  return Guard(err, "tape", {t}, [&, caller = __func__]() -> absl::Status {
    if (!a == !v)
      return Invalid(caller, ": 'array' and 'variable' are both ", a ? "given" : "NULL",
                     "; exactly one is needed");
    if (a) return t->Watch(a);
    t->Watch(v->storage);
    return absl::OkStatus();
  });
}

void keel_tape_pause(keel_tape* t, int32_t on) {
  if (t) t->Pause(on != 0);
}

void keel_tape_reset(keel_tape* t) {
  if (t) t->Reset();
}

keel_rc keel_tape_gradient(keel_tape* t, keel_array* const* ys, uint32_t n_ys, keel_array* const* seeds,
                           keel_array* const* xs, keel_variable* const* variables, uint32_t n_xs,
                           uint32_t flags, keel_array** out, keel_error** err) {
  return Guard(err, "tape ys[n_ys]* out[n_xs]", {t, ys, n_ys, out, n_xs}, [&]() -> absl::Status {
    RETURN_IF_ERROR(CheckGradientFlags("keel_tape_gradient", flags, n_ys, seeds != nullptr));
    TapeGradientRequest wanted{{ys, n_ys}, {}, {}, {}, n_xs};
    wanted.zeros = (flags & KEEL_GRADIENT_ZEROS) != 0;
    wanted.jacobian = (flags & KEEL_GRADIENT_JACOBIAN) != 0;
    if (seeds) wanted.seeds = {seeds, n_ys};
    ASSIGN_OR_RETURN(Trace * trace, Trace::OfAll(wanted.ys));
    ASSIGN_OR_RETURN(Sources sources, SourcesOf(*t, xs, variables, n_xs, trace));
    std::vector<keel_array*> raw = Raw(sources.arrays);
    wanted.xs = raw;
    wanted.to = sources.to;
    uint32_t n_out = 0;
    return Give(t->Gradient(wanted), out, n_xs, &n_out);
  });
}

void keel_tape_free(keel_tape* t) { delete t; }
