// tape_gradient.cc: gradients by a tape: the part of its record that they need, written into a graph.
#include "kernel/language/graph/constant.h"
#include "kernel/program/trace/tape.h"
#include "kernel/runtime/device/move.h"

namespace keel {

// Marks the entries on a path from a source to a target.
std::vector<bool> Tape::Between(const std::vector<uint32_t>& ys, const std::vector<uint32_t>& xs) const {
  std::vector<bool> depends(values_.size()), leads(values_.size()), between(entries_.size());
  for (uint32_t x : xs)
    if (x != kNone) depends[x] = true;
  for (uint32_t y : ys)
    if (y != kNone) leads[y] = true;
  auto in = [&](const Entry& e) { return std::span(operands_).subspan(e.values_at, e.n_in); };
  auto out = [&](const Entry& e) { return std::span(operands_).subspan(e.values_at + e.n_in, e.n_out); };
  auto any = [](const std::vector<bool>& of, std::span<const uint32_t> values) {
    for (uint32_t v : values)
      if (v != kNone && of[v]) return true;
    return false;
  };
  for (size_t e = 0; e < entries_.size(); e++)
    if ((between[e] = any(depends, in(entries_[e]))))
      for (uint32_t v : out(entries_[e])) depends[v] = true;
  for (size_t e = entries_.size(); e-- > 0;)
    if ((between[e] = between[e] && any(leads, out(entries_[e]))))
      for (uint32_t v : in(entries_[e]))
        if (v != kNone) leads[v] = true;
  return between;
}

Recording Tape::Slice(const TapeGradientRequest& request) const {
  std::vector<uint32_t> ys, xs;
  for (keel_array* y : request.ys) ys.push_back(Find(y));
  for (keel_array* x : request.xs)
    xs.push_back(Watches(x) ? Find(x) : kNone);  // the tape kept too little of unwatched arrays
  Recording r;
  r.device = device_;
  r.zeros = request.zeros;
  r.jacobian = request.jacobian;
  r.to.assign(request.to.begin(), request.to.end());
  r.count = request.count;
  r.seeds.assign(request.seeds.begin(), request.seeds.end());
  std::vector<uint32_t> renumbered(values_.size(), kNone);
  auto use = [&](uint32_t v, bool computed) {
    if (v == kNone) return kNoValue;
    if (renumbered[v] == kNone) {
      const Value& value = values_[v];
      renumbered[v] = static_cast<uint32_t>(r.values.size());
      auto dims = dims_.begin() + value.dims_at;
      r.values.push_back({{value.dtype, Dims(dims, dims + value.rank)}, value.kept.get(), computed});
    }
    return renumbered[v];
  };
  std::vector<bool> between = Between(ys, xs);
  for (size_t e = 0; e < entries_.size(); e++) {
    if (!between[e]) continue;
    const Entry& entry = entries_[e];
    Recording::Step step{&taped_ops_[entry.taped], {}, {}};
    const uint32_t* values = &operands_[entry.values_at];
    for (uint32_t i = 0; i < entry.n_in; i++) step.in.push_back(use(values[i], false));
    for (uint32_t i = 0; i < entry.n_out; i++) step.out.push_back(use(values[entry.n_in + i], true));
    r.steps.push_back(std::move(step));
    r.device = entry.device;
  }
  auto use_or_type = [&](uint32_t v, const keel_array* array, bool needed) {
    uint32_t used = use(v, false);
    if (used != kNoValue || !needed) return used;
    r.values.push_back({TypeOf(array), nullptr, false});
    return static_cast<uint32_t>(r.values.size() - 1);
  };
  for (size_t i = 0; i < ys.size(); i++)
    r.ys.push_back(use_or_type(ys[i], request.ys[i], request.zeros && request.jacobian));
  for (size_t i = 0; i < xs.size(); i++) r.xs.push_back(use_or_type(xs[i], request.xs[i], request.zeros));
  return r;
}

absl::StatusOr<Results> Tape::Gradient(const TapeGradientRequest& request) {
  if (used_ && !options_.persistent)
    return Annotate(Error(absl::StatusCode::kFailedPrecondition,
                          "A non-persistent tape can only be used to compute one set of gradients (or "
                          "jacobians)"),
                    kErrorHint, "create the tape with the option \"persistent\" = \"1\"");
  used_ = true;
  ASSIGN_OR_RETURN(Trace * trace, Trace::OfAll(request.ys));
  Results out(request.count);
  RETURN_IF_ERROR(trace ? WriteGradient(trace, request, &out) : RunGradient(request, &out));
  if (!options_.persistent) Forget();
  return out;
}

absl::Status Tape::RunGradient(const TapeGradientRequest& request, Results* out) {
  Recording recording = Slice(request);
  ASSIGN_OR_RETURN(auto gradient, context_->gradients.Find(recording, context_->Options()));
  std::vector<keel_array*> feeds;
  for (const Recording::Value& value : recording.values)
    if (value.kept) feeds.push_back(value.kept);
  for (size_t i = 0; i < recording.seeds.size(); i++)
    if (recording.seeds[i] && recording.ys[i] != kNoValue) feeds.push_back(recording.seeds[i]);
  Results made(gradient->plan ? gradient->plan->outputs() : 0);
  if (gradient->plan) RETURN_IF_ERROR(gradient->plan->Run(feeds, {made.data(), made.size()}));
  if (outer_ && gradient->taped) outer_->Record(gradient->taped, recording.device, feeds, Raw(made));
  for (size_t i = 0, next = 0; i < request.count; i++)
    if (gradient->connected[i]) (*out)[i] = std::move(made[next++]);
  return absl::OkStatus();
}

// Frees the kept arrays and the structure: a non-persistent tape allows one gradient.
void Tape::Forget() {
  Reset();
  used_ = true;
}

}  // namespace keel
