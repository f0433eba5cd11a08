// traced_tape.cc: state of a tape for each trace; see tape.h.
#include "kernel/program/trace/tape.h"

namespace keel {
namespace {
constexpr NodeId kStillHidden = UINT32_MAX;  // hidden until the tape resumes
}

// A tape that began in a body watches the body's parameter for an outer value: gradients do not leave bodies.
absl::Status Tape::WatchTraced(keel_array* array) {
  Trace *home = Trace::Of(array), *trace = home, *body = home->Current();
  for (; body && body != home; body = body->parent())
    if (!Traced(body).predates_body) trace = body;
  if (!body) trace = home;  // the trace of the array has ended
  ValueId value = Trace::ValueOf(array);
  if (trace != home) {
    ASSIGN_OR_RETURN(value, trace->Import(array));
  }
  Traced(trace).values.emplace_back(value, trace->NextNode());
  return absl::OkStatus();
}

const TraceWatch* Tape::WatchOf(const Trace* trace) const {
  for (const TraceWatch& watch : traces_)
    if (watch.trace.get() == trace) return &watch;
  return nullptr;
}

TraceWatch& Tape::Traced(Trace* trace) {
  if (const TraceWatch* known = WatchOf(trace)) return const_cast<TraceWatch&>(*known);
  TraceWatch& watch = traces_.emplace_back();
  watch.trace = trace->shared_from_this();
  watch.tape = this;
  if (paused_) watch.hidden.emplace_back(trace->NextNode(), kStillHidden);
  return watch;
}

void Tape::Enter(Trace* body) {
  Traced(body).predates_body = true;
  if (outer_) outer_->Enter(body);
}

void Tape::Pause(bool on) {
  if (!on && !paused_) return;
  paused_ += on ? 1 : -1;
  if (paused_ > on) return;  // nested: already paused, or still paused
  for (TraceWatch& watch : traces_) {
    if (on) {
      watch.hidden.emplace_back(watch.trace->NextNode(), kStillHidden);
      continue;
    }
    auto& [from, to] = watch.hidden.back();
    to = watch.trace->NextNode();
    if (watch.predates_body) watch.trace->Hide(from, to);
  }
}

// A tape does not record the gradients that it computes, as in an eager run; their nodes become hidden.
absl::Status Tape::WriteGradient(Trace* trace, const TapeGradientRequest& request, Results* out) {
  for (Trace* around = trace; around; around = around->parent()) Traced(around);
  std::vector<uint32_t> ys, xs;
  for (const TraceLink& link : trace->links()) ys.push_back(Find(link.array.get()));
  for (keel_array* x : request.xs) xs.push_back(Find(x));
  std::vector<bool> between = Between(ys, xs);
  if (std::ranges::find(between, true) != between.end())
    return Annotate(Unimplemented("gradient: a constant of the trace of \"", trace->graph()->name,
                                  "\" was computed from a source while it was traced"),
                    kErrorHint, "pass the source to the function as an argument, or make it a variable");
  NodeId first = trace->NextNode();
  TraceWatch& watch = Traced(trace);
  RETURN_IF_ERROR(trace->Gradient(request, watch, {out->data(), out->size()}));
  if (!paused_) watch.hidden.emplace_back(first, trace->NextNode());
  return absl::OkStatus();
}

}  // namespace keel
