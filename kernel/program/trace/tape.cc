// tape.cc: recording. See tape.h; gradients are in tape_gradient.cc.
#include "kernel/program/trace/tape.h"

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

}  // namespace keel
