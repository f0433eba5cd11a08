// relay.cc: see relay.h.
#include "relay.h"

namespace keel_cuda {
namespace {

struct Operand {
  RecordedLaunch* launch;
  size_t use;
  Place place() const { return launch->places[launch->work->steps[0].uses[use]]; }
  bool IsScratch() const { return launch->work->steps[0].uses[use] == launch->places.size() - 2; }
  uint64_t bytes() const { return (launch->work->product->bytes[use] + 255) / 256 * 256; }
};

std::vector<Operand> OperandsIn(std::vector<RecordedLaunch>& launches, uint16_t slot) {
  std::vector<Operand> all;
  for (RecordedLaunch& launch : launches)
    if (launch.work->product)
      for (size_t use = 0; use < launch.work->steps[0].uses.size(); use++)
        if (const Operand operand{&launch, use}; operand.place().slot == slot && operand.bytes())
          all.push_back(operand);
  return all;
}

bool IsWritten(const std::vector<RecordedLaunch>& launches, uint16_t slot) {
  return std::ranges::any_of(launches, [&](const RecordedLaunch& launch) {
    const auto end = launch.places.end() - 2;  // of the results
    return std::any_of(launch.places.begin() + launch.inputs, end,
                       [&](const Place& place) { return place.slot == slot; });
  });
}

// Offsets of the operands in the memory: the same bytes have one place.
std::vector<uint64_t> PlaceAll(std::span<const Operand> all, uint64_t* needed) {
  std::vector<uint64_t> offsets;
  for (const Operand& operand : all) {
    const auto same = std::ranges::find_if(all.first(offsets.size()), [&](const Operand& before) {
      return before.place().address == operand.place().address && before.bytes() == operand.bytes();
    });
    const auto before = static_cast<size_t>(same - all.begin());
    offsets.push_back(before < offsets.size() ? offsets[before] : *needed);
    if (offsets.back() == *needed) *needed += operand.bytes();
  }
  return offsets;
}

}  // namespace

keel_rc AddRelays(keel_queue q, std::vector<RecordedLaunch>& launches, uint16_t slot, uint64_t most,
                  Relays* out) {
  const std::vector<Operand> all = OperandsIn(launches, slot);
  const std::vector<uint64_t> offsets = PlaceAll(all, &out->bytes);
  if (all.empty()) return KEEL_OK;
  if (out->bytes > most) return KEEL_OOM;
  CUfunction copy = nullptr;
  if (keel_rc rc = q->device->Kernel("system", "relay", &copy)) return rc;
  if (keel_rc rc = Launch(q, copy, 1, {})) return rc;  // copies nothing; its code is not loaded by a capture
  CUDA_TRY(q->device, cuMemAlloc, &out->memory, out->bytes);
  const bool is_written = IsWritten(launches, slot);
  for (size_t i = 0; i < all.size(); i++) {
    const auto before = offsets.begin() + static_cast<ptrdiff_t>(i);
    // A feed is copied for its first product only.
    const bool again = !is_written && std::find(offsets.begin(), before, offsets[i]) != before;
    all[i].launch->relays[all[i].use] = {out->memory + offsets[i],
                                         again || all[i].IsScratch() ? nullptr : copy};
  }
  return KEEL_OK;
}

}  // namespace keel_cuda
