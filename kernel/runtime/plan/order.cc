// order.cc: see order.h.
#include "kernel/runtime/plan/order.h"

#include <algorithm>

#include "kernel/base/align.h"
#include "kernel/runtime/plan/moves.h"

namespace keel {
namespace {

constexpr uint64_t kScratch = ~uint64_t{0};  // a space of addresses, as are the arena (0) and each output

struct UsedBytes {
  uint64_t space, begin, end;
  bool written;
};

// Feeds and constants are not listed: no launch writes them.
std::vector<UsedBytes> UsedBy(const Lowered& lowered, const Binding& b, size_t s) {
  std::vector<UsedBytes> used;
  auto add = [&](uint32_t v, bool written) {
    if (v == kNoValue || !b.counts[v]) return;
    const Storage& at = b.storage[v];
    const bool arena = at.kind == Storage::kArena;
    if (!arena && at.kind != Storage::kOutput) return;
    const uint64_t begin = arena ? at.place : at.offset;
    used.push_back({arena ? 0 : at.place + 1, begin, begin + BytesOf(lowered, b, v), written});
  };
  for (uint32_t v : lowered.steps[s].in) add(v, false);
  for (uint32_t v : lowered.steps[s].out) add(v, true);
  const uint64_t at = b.scratch_at.empty() ? 0 : b.scratch_at[s];
  if (uint64_t bytes = b.launches[s]->launch.scratch_bytes) used.push_back({kScratch, at, at + bytes, true});
  return used;
}

bool Conflict(const std::vector<UsedBytes>& some, const std::vector<UsedBytes>& others) {
  for (const UsedBytes& a : some)
    for (const UsedBytes& o : others)
      if (a.space == o.space && (a.written || o.written) && a.begin < o.end && o.begin < a.end) return true;
  return false;
}

void AlternateScratch(const Lowered& lowered, const PlanOptions& options, Binding* b) {
  constexpr uint64_t kMore = 2, kShare = 8;
  const uint64_t block = RoundUp(b->scratch_bytes, AlignmentOf(lowered));
  const uint64_t memory = b->arena_bytes + b->scratch_bytes + b->output_bytes;
  uint64_t room = memory / kShare;
  if (options.memory) room = std::min(room, options.memory - memory);
  const uint64_t more = block ? std::min(kMore, room / block) : 0;
  if (!more) return;
  uint64_t turn = 0;
  for (const auto& launch : b->launches)
    b->scratch_at.push_back(launch->launch.scratch_bytes ? turn++ % (more + 1) * block : 0);
  b->scratch_bytes += std::min(more, turn - 1) * block;
}

}  // namespace

void OrderLaunches(const Lowered& lowered, const PlanOptions& options, Binding* b) {
  if (!lowered.accelerator || lowered.first_step) return;
  if (std::ranges::any_of(lowered.steps, [](const Step& s) { return s.core || !s.bodies.empty(); })) return;
  AlternateScratch(lowered, options, b);
  std::vector<std::vector<UsedBytes>> before;  // since launch 1
  for (size_t s = 0; s < lowered.steps.size(); s++) {
    b->order.emplace_back();
    if (s % kLaunchesOfBatch == 0 || IsMoves(lowered.steps[s])) before.clear();
    if (IsMoves(lowered.steps[s]) || IsEmpty(lowered.steps[s], *b)) continue;
    std::vector<UsedBytes> mine = UsedBy(lowered, *b, s);
    size_t depends = before.size();
    while (depends && !Conflict(before[depends - 1], mine)) depends--;
    before.push_back(std::move(mine));
    b->order.back() = {static_cast<uint32_t>(before.size()), static_cast<uint32_t>(depends)};
  }
}

}  // namespace keel
