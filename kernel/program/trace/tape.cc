// tape.cc: recording, and extraction of the part that a gradient needs. See tape.h.
#include "kernel/program/trace/tape.h"

#include "kernel/language/graph/constant.h"
#include "kernel/runtime/device/move.h"

namespace keel {

void SerialIndex::Clear() {
  row_.clear();
  if (used_) std::fill(slots_.begin(), slots_.end(), Entry());
  used_ = 0;
}

void SerialIndex::AddSlot(uint64_t serial, uint32_t number) {
  if (2 * (used_ + 1) > slots_.size()) {
    std::vector<Entry> old(slots_.empty() ? 64 : 2 * slots_.size());
    std::swap(old, slots_);
    mask_ = slots_.size() - 1;
    used_ = 0;
    for (const Entry& e : old)
      if (e.serial) AddSlot(e.serial, e.number);
  }
  size_t at = Slot(serial);
  while (slots_[at].serial) at = (at + 1) & mask_;
  slots_[at] = {serial, number};
  used_++;
}

namespace {
// Two symbolic arrays may represent one value.
bool SameValue(const keel_array* a, const keel_array* b) {
  if (a == b || !a->symbolic() || !b->symbolic()) return a == b;
  return Trace::Of(a) == Trace::Of(b) && Trace::ValueOf(a) == Trace::ValueOf(b);
}

}  // namespace

uint32_t Tape::Number(keel_array* array, bool watched, bool fresh) {
  uint64_t serial = SerialOf(array, fresh);
  uint32_t known = numbers_.Find(serial);
  if (known != kNone) {
    values_[known].watched |= watched;
    return known;
  }
  auto number = static_cast<uint32_t>(values_.size());
  auto rank = static_cast<uint32_t>(array->view.ndim);
  values_.push_back({array->dtype, watched, rank, static_cast<uint32_t>(dims_.size()), {}});
  for (uint32_t d = 0; d < rank; d++) dims_.push_back(array->dims[d]);
  numbers_.Add(serial, number, fresh);
  return number;
}

absl::Status Tape::Watch(keel_array* array) {
  if (array->symbolic()) return WatchTraced(array);
  Number(array, true);
  return absl::OkStatus();
}

Tape::VariableState& Tape::StateOf(const std::shared_ptr<Variable>& variable) {
  VariableState& held = variables_[variable.get()];
  held.variable = variable;
  return held;
}

void Tape::RecordRead(const std::shared_ptr<Variable>& variable, keel_array* value) {
  if (outer_) outer_->RecordRead(variable, value);
  if (IsInactive()) return;
  VariableState& held = StateOf(variable);
  bool watch =
      held.watched || (options_.watch_variables && variable->trainable() && IsFloating(variable->dtype()));
  if (!watch || std::ranges::any_of(held.reads, [&](const ArrayRef& r) { return SameValue(r.get(), value); }))
    return;
  held.reads.push_back(ArrayRef::Share(value));
  Watch(value).IgnoreError();  // fails for ended traces only
}

uint32_t Tape::Find(const keel_array* array) const {
  uint64_t serial = array ? array->serial.load(std::memory_order_relaxed) : 0;
  return serial ? numbers_.Find(serial) : kNone;
}

bool Tape::Watches(const keel_array* array) const {
  uint32_t number = Find(array);
  return number != kNone && values_[number].watched;
}

void Tape::RecordUnreachableRead(const std::shared_ptr<Variable>& variable) {
  if (outer_) outer_->RecordUnreachableRead(variable);
  if (!IsInactive()) StateOf(variable).lost = true;
}

[[gnu::cold]] absl::Status Tape::CheckReads(const std::shared_ptr<Variable>& variable) {
  if (!StateOf(variable).lost) return absl::OkStatus();
  return Annotate(Unimplemented("gradient: variable \"", variable->name(),
                                "\" was read in a body that also writes it, which gradients do not reach"),
                  kErrorHint,
                  "carry its value as an argument and assign the result after the loop or branch");
}

uint32_t Tape::NumberOf(const std::shared_ptr<const Taped>& taped) {
  if (last_taped_.first == taped.get()) return last_taped_.second;
  auto it = taped_numbers_.find(taped.get());
  if (it == taped_numbers_.end()) {
    it = taped_numbers_.emplace(taped.get(), static_cast<uint32_t>(taped_ops_.size())).first;
    taped_ops_.push_back(taped);
  }
  last_taped_ = *it;
  return it->second;
}

void Tape::Record(const std::shared_ptr<const Taped>& taped, Device* device, std::span<keel_array* const> in,
                  std::span<keel_array* const> out) {
  if (outer_) outer_->Record(taped, device, in, out);
  if (IsInactive() || !taped->differentiable) return;
  Taped::Reads reads;
  bool any = false;
  absl::InlinedVector<uint32_t, 8> known;
  for (size_t i = 0; i < in.size(); i++) {
    known.push_back(Find(in[i]));
    if (known[i] == kNone || !values_[known[i]].watched) continue;
    any = true;
    reads.in |= taped->ReadsOf(i).in;
    reads.out |= taped->ReadsOf(i).out;
  }
  if (!any) return;
  entries_.push_back({NumberOf(taped), static_cast<uint32_t>(operands_.size()),
                      static_cast<uint16_t>(in.size()), static_cast<uint16_t>(out.size()), device});
  auto keep = [&](uint32_t v, keel_array* array, bool read) {
    operands_.push_back(v);
    if (read && !values_[v].kept) values_[v].kept = ArrayRef::Share(array);
  };
  for (size_t i = 0; i < in.size(); i++)
    keep(known[i] == kNone && in[i] ? Number(in[i], false) : known[i], in[i],
         in[i] && reads.in & Taped::Bit(i));
  for (size_t i = 0; i < out.size(); i++) keep(Number(out[i], true, true), out[i], reads.out & Taped::Bit(i));
}

void Tape::Reset() {
  variables_.clear();
  traces_.clear();
  numbers_.Clear();
  values_.clear();
  dims_.clear();
  entries_.clear();
  operands_.clear();
  taped_ops_.clear();
  taped_numbers_.clear();
  last_taped_ = {nullptr, 0};
  used_ = false;
}

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

[[gnu::cold]] absl::StatusOr<Results> Tape::Gradient(const TapeGradientRequest& request) {
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

[[gnu::cold]] absl::Status Tape::RunGradient(const TapeGradientRequest& request, Results* out) {
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
