// eager_device.cc: see eager_device.h.
#include "kernel/api/eager_device.h"

namespace keel {
namespace {

constexpr uint64_t kMostMemory = 65536;  // of an idle run, which keeps it as long as the op exists

int64_t TypeOfOperand(const keel_array* a) {
  return a ? static_cast<int64_t>(a->dtype) << 8 | a->view.ndim : -1;
}

}  // namespace

Signature SignatureOf(keel_array* const* in, uint32_t n) {
  Signature s;
  for (uint32_t i = 0; i < n; i++) {
    s.push_back(TypeOfOperand(in[i]));
    if (in[i]) s.insert(s.end(), in[i]->shape().begin(), in[i]->shape().end());
  }
  return s;
}

DeviceQuickTable::~DeviceQuickTable() {
  for (auto& slot : slots_) delete slot.load();
}

uint64_t DeviceQuickTable::HashOf(keel_array* const* in, uint32_t n) {
  if (n > kQuickOperands) return 0;
  uint64_t hash = 1;
  auto mix = [&](int64_t part) { hash = (hash ^ static_cast<uint64_t>(part)) * 0x9e3779b97f4a7c15u; };
  for (uint32_t i = 0; i < n; i++) {
    mix(TypeOfOperand(in[i]));
    if (!in[i]) continue;
    if (!in[i]->contiguous || in[i]->symbolic()) return 0;
    for (int64_t dim : in[i]->shape()) mix(dim);
  }
  return hash | 1;  // the slot is in the high bits
}

bool DeviceQuickTable::Same(const Signature& signature, keel_array* const* in, uint32_t n) {
  const int64_t* at = signature.data();
  for (uint32_t i = 0; i < n; i++) {
    if (*at++ != TypeOfOperand(in[i])) return false;
    if (!in[i]) continue;
    for (int64_t dim : in[i]->shape())
      if (*at++ != dim) return false;
  }
  return true;
}

QuickTable::Outcome DeviceQuickTable::Apply(keel_array* const* in, uint32_t n, keel_array** out,
                                            absl::Status* error) const {
  const uint64_t hash = Timeline::ShowsRuns() ? 0 : HashOf(in, n);
  if (!hash) return QuickTable::kUnknown;
  const Entry* entry = nullptr;
  for (size_t at = hash >> 56;; at = (at + 1) % kSlots) {
    entry = slots_[at].load(std::memory_order_acquire);
    if (!entry) return QuickTable::kUnknown;
    if (entry->hash == hash && Same(entry->signature, in, n)) break;
  }
  keel_array* feeds[kQuickOperands];
  size_t given = 0;
  for (uint32_t i = 0; i < n; i++)
    if (in[i]) feeds[given++] = in[i];
  ArrayRef result;
  *error = entry->plan->RunBound(*entry->binding, {feeds, given}, {&result, 1});
  if (!error->ok()) [[unlikely]]
    return QuickTable::kFailed;
  *out = result.Detach();
  return QuickTable::kDone;
}

void DeviceQuickTable::Learn(keel_array* const* in, uint32_t n, const std::shared_ptr<Plan>& plan) {
  const uint64_t hash = HashOf(in, n);
  if (!hash || !plan->lowered().accelerator || plan->outputs() != 1 || entries_ == kMost) return;
  auto entry = std::make_unique<Entry>(Entry{hash, SignatureOf(in, n), plan, nullptr});
  std::vector<keel_array*> feeds;
  for (uint32_t i = 0; i < n; i++)
    if (in[i]) feeds.push_back(in[i]);
  absl::StatusOr<std::shared_ptr<Binding>> binding = plan->FindBinding(feeds);
  if (!binding.ok()) return;  // the run reports it
  if ((*binding)->arena_bytes + (*binding)->scratch_bytes > kMostMemory) return;
  entry->binding = *std::move(binding);
  size_t at = hash >> 56;
  for (; const Entry* other = slots_[at].load(); at = (at + 1) % kSlots)
    if (other->hash == hash && other->signature == entry->signature) return;
  slots_[at].store(entry.release(), std::memory_order_release);
  entries_++;
}

}  // namespace keel
