// traced_tape.cc: what a tape remembers of traces; see tape.h.
#include "kernel/trace/tape.h"

namespace keel {
namespace {
constexpr NodeId kStill = UINT32_MAX;  // hidden until further notice
}

// Of a value around a body in which the tape began, the body's own is watched: gradients do not leave it.
absl::Status Tape::WatchTraced(keel_array* array) {
  Trace *home = Trace::Of(array), *trace = home, *body = home->Current();
  for (; body && body != home; body = body->parent())
    if (!Traced(body).around) trace = body;
  if (!body) trace = home;  // it has ended
  ValueId value = Trace::ValueOf(array);
  if (trace != home) {
    ASSIGN_OR_RETURN(value, trace->Inside(array));
  }
  Traced(trace).values.emplace_back(value, trace->Now());
  return absl::OkStatus();
}

TraceWatch& Tape::Traced(Trace* trace) {
  for (TraceWatch& watch : traces_)
    if (watch.trace.get() == trace) return watch;
  TraceWatch& watch = traces_.emplace_back();
  watch.trace = trace->shared_from_this();
  watch.watches_captured = [this](const keel_array* array) { return Watches(array); };
  watch.other = [this](const Trace* other) {
    auto found = std::ranges::find_if(traces_, [&](const TraceWatch& w) { return w.trace.get() == other; });
    return found == traces_.end() ? nullptr : &*found;
  };
  if (paused_) watch.hidden.emplace_back(trace->Now(), kStill);
  return watch;
}

void Tape::Enter(Trace* body) {
  Traced(body).around = true;
  if (outer_) outer_->Enter(body);
}

void Tape::Pause(bool on) {
  if (!on && !paused_) return;
  paused_ += on ? 1 : -1;
  if (paused_ > on) return;  // it was paused before, or is still
  for (TraceWatch& watch : traces_) {
    if (on) {
      watch.hidden.emplace_back(watch.trace->Now(), kStill);
      continue;
    }
    auto& [from, to] = watch.hidden.back();
    to = watch.trace->Now();
    if (watch.around) watch.trace->Hide(from, to);
  }
}

// As eagerly, a tape does not see the gradients that it takes itself.
absl::Status Tape::WriteGradient(Trace* trace, const GradientOf& of, Results* out) {
  for (Trace* around = trace; around; around = around->parent()) Traced(around);
  std::vector<uint32_t> ys, xs;
  for (const TraceLink& link : trace->links()) ys.push_back(Find(link.array.get()));
  for (keel_array* x : of.xs) xs.push_back(Find(x));
  std::vector<bool> between = Between(ys, xs);
  if (std::ranges::find(between, true) != between.end())
    return Annotate(Unimplemented("gradient: a constant of the trace of \"", trace->graph()->name,
                                  "\" was computed from a source while it was traced"),
                    kErrorHint, "give the source to the function as an argument, or make it a variable");
  NodeId first = trace->Now();
  TraceWatch& watch = Traced(trace);
  RETURN_IF_ERROR(trace->Gradient(of, watch, {out->data(), out->size()}));
  if (!paused_) watch.hidden.emplace_back(first, trace->Now());
  return absl::OkStatus();
}

}  // namespace keel
