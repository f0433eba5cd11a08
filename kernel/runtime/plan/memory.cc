// memory.cc: assigns storage to the values of a binding, in one pass over the schedule. A result takes the
// best-fitting free block of the arena, or the memory of an operand if the impl supports in-place results and
// this is the operand's last use. A block is freed after its last use, in a parallel section at the end of
// the section. Fetched results are written directly to the caller's array. A value with parts (sub_buffers.h)
// is allocated when the first of its parts is computed.
#include <algorithm>
#include <map>
#include <set>

#include "kernel/base/align.h"
#include "kernel/runtime/plan/bind.h"
#include "kernel/runtime/plan/core.h"
#include "kernel/runtime/plan/sub_buffers.h"

namespace keel {
namespace {

constexpr size_t kNever = ~size_t{0};

// Free list of an arena that grows at its end.
class Arena {
 public:
  uint64_t Allocate(uint64_t size) {
    if (auto it = by_size_.lower_bound({size, 0}); it != by_size_.end()) {
      auto [free_size, at] = *it;
      Remove(at, free_size);
      if (free_size > size) Insert(at + size, free_size - size);
      return at;
    }
    uint64_t at = end_;
    if (auto last = by_place_.rbegin(); last != by_place_.rend() && last->first + last->second == end_) {
      at = last->first;  // extend the free block at the end
      Remove(at, end_ - at);
    }
    end_ = at + size;
    return at;
  }

  void Free(uint64_t at, uint64_t size) {
    auto next = by_place_.lower_bound(at);
    if (next != by_place_.end() && at + size == next->first) size += Remove(next->first, next->second);
    auto after = by_place_.lower_bound(at);
    if (after != by_place_.begin() && std::prev(after)->first + std::prev(after)->second == at) {
      at = std::prev(after)->first;
      size += Remove(at, std::prev(after)->second);
    }
    Insert(at, size);
  }
  uint64_t end() const { return end_; }

 private:
  void Insert(uint64_t at, uint64_t size) {
    by_place_[at] = size;
    by_size_.insert({size, at});
  }
  uint64_t Remove(uint64_t at, uint64_t size) {
    by_place_.erase(at);
    by_size_.erase({size, at});
    return size;
  }
  std::map<uint64_t, uint64_t> by_place_;
  std::set<std::pair<uint64_t, uint64_t>> by_size_;
  uint64_t end_ = 0;
};

class Planner {
 public:
  Planner(const Lowered& lowered, const PlanOptions& options, const Binding& binding,
          const MemoryPlan& schedule)
      : l_(lowered), options_(options), binding_(binding), plan_(schedule) {}

  MemoryPlan Run(bool parts) {
    plan_.storage.assign(l_.values.size(), {});
    placed_.assign(l_.values.size(), false);
    PlaceOutside();
    sub_buffers_ = parts ? FindSubBuffers(l_, binding_, plan_.storage, placed_) : SubBuffers();
    FindLastUses();
    for (const Section& section : plan_.sections) PlaceSection(section);
    for (size_t s = 0; plan_.sections.empty() && s < l_.steps.size(); s++) PlaceStep(s);
    for (uint32_t v = 0; v < l_.values.size(); v++) {
      uint64_t at = 0;
      Storage place = plan_.storage[sub_buffers_.Whole(l_.Root(v), &at)];
      (place.kind == Storage::kArena ? place.place : place.offset) += at;
      if (at || l_.Root(v) != v || sub_buffers_.IsPart(v)) plan_.storage[v] = place;
    }
    plan_.is_noop = sub_buffers_.is_noop;
    plan_.arena_bytes = arena_.end();
    return std::move(plan_);
  }

 private:
  uint64_t Bytes(uint32_t v) const { return BytesOf(l_, binding_, v); }

  uint64_t Rounded(uint32_t v) const { return RoundUp(Bytes(v), AlignmentOf(l_)); }

  // Places values outside the arena: feeds, constants, variables, and fetched roots, each in its first fetch.
  void PlaceOutside() {
    for (size_t v = 0; v < l_.values.size(); v++) {
      const PlanValue& value = l_.values[v];
      if (value.where == Where::kFeed) plan_.storage[v] = {Storage::kFeed, value.index};
      if (value.where == Where::kConstant) plan_.storage[v] = {Storage::kConstant, value.index};
      placed_[v] = value.where == Where::kFeed || value.where == Where::kConstant;
    }
    for (size_t s = 0; s < l_.steps.size(); s++)
      if (l_.steps[s].core && l_.steps[s].core->reads && !l_.accelerator) {
        plan_.storage[l_.steps[s].out[0]] = {Storage::kVariable, s};
        placed_[l_.steps[s].out[0]] = true;
      }
    for (size_t i = 0; i < l_.fetches.size(); i++) {
      uint32_t root = l_.Root(l_.fetches[i]);
      plan_.output_bytes += Bytes(l_.fetches[i]);
      plan_.output_source.push_back(placed_[root] ? root : kNoValue);
      if (placed_[root]) continue;
      plan_.storage[root] = {Storage::kOutput, i};
      placed_[root] = true;
    }
    for (size_t s = 0; s < l_.steps.size(); s++) PlaceAssigned(s);
  }

  // In host memory, an assigned value is computed into a separate array, which the variable then takes.
  void PlaceAssigned(size_t s) {
    if (l_.accelerator || !l_.steps[s].core || !l_.steps[s].core->takes_array) return;
    uint32_t root = l_.Root(l_.steps[s].in[0]);
    if (placed_[root]) return;
    plan_.storage[root] = {Storage::kAssigned, s};
    plan_.output_bytes += Bytes(root);
    placed_[root] = true;
  }

  void FindLastUses() {
    last_use_.assign(l_.values.size(), kNever);
    for (const Section& section : plan_.sections)
      for (uint32_t s : section.steps) Use(s);
    for (size_t s = 0; plan_.sections.empty() && s < l_.steps.size(); s++) Use(s);
  }
  void Use(size_t s) {
    for (uint32_t v : l_.steps[s].in)
      if (v != kNoValue) last_use_[Whole(v)] = s;
  }
  uint32_t Whole(uint32_t v) const { return sub_buffers_.Whole(l_.Root(v)); }

  void PlaceSection(const Section& section) {
    if (!section.parallel) {
      for (uint32_t s : section.steps) PlaceStep(s);
      return;
    }
    std::vector<uint32_t> over;
    for (uint32_t s : section.steps) {
      FindDying(s, &over);
      PlaceResults(s, nullptr);
      FindUnread(s, &over);
    }
    for (uint32_t root : over) Free(root);
  }

  void PlaceStep(size_t s) {
    std::vector<uint32_t> dying;
    FindDying(s, &dying);
    PlaceResults(s, &dying);
    if (options_.observe) return;
    FindUnread(s, &dying);
    for (uint32_t root : dying) Free(root);
  }

  // Adds the roots in the arena whose last use is this step.
  void FindDying(size_t s, std::vector<uint32_t>* dying) {
    for (uint32_t v : l_.steps[s].in) {
      uint32_t root = v == kNoValue ? kNoValue : Whole(v);
      if (root != kNoValue && last_use_[root] == s && plan_.storage[root].kind == Storage::kArena &&
          !Contains(*dying, root))
        dying->push_back(root);
    }
  }
  // Adds the unused results of this step.
  void FindUnread(size_t s, std::vector<uint32_t>* dying) {
    for (uint32_t v : l_.steps[s].out)
      if (!sub_buffers_.IsPart(v) && last_use_[v] == kNever && plan_.storage[v].kind == Storage::kArena)
        dying->push_back(v);
  }

  // `dying`: operands whose memory a result may reuse; null: no reuse.
  void PlaceResults(size_t s, std::vector<uint32_t>* dying) {
    const Step& step = l_.steps[s];
    for (uint32_t result : step.out) {
      if (sub_buffers_.IsPart(result)) plan_.unshared_bytes += Rounded(result);
      const uint32_t v = Whole(result);
      if (placed_[v]) continue;
      placed_[v] = true;
      uint64_t size = Rounded(v);
      plan_.unshared_bytes += size;
      if (dying && ReuseOperand(step, v, dying)) continue;
      plan_.storage[v] = {Storage::kArena, size ? arena_.Allocate(size) : 0};
    }
  }

  static bool Contains(const std::vector<uint32_t>& list, uint32_t v) {
    return std::find(list.begin(), list.end(), v) != list.end();
  }

  void Free(uint32_t root) {
    if (uint64_t size = Rounded(root)) arena_.Free(plan_.storage[root].place, size);
  }

  // In place: result 0 reuses the memory of an operand of the same type whose last use is this step.
  bool ReuseOperand(const Step& step, uint32_t v, std::vector<uint32_t>* dying) {
    if (options_.observe || v != step.out[0] || !(step.impl->table.flags & KEEL_IMPL_INPLACE)) return false;
    for (uint32_t operand : step.in) {
      if (operand == kNoValue || l_.values[operand].type.dtype != l_.values[v].type.dtype ||
          binding_.shapes[operand] != binding_.shapes[v])
        continue;
      uint32_t root = l_.Root(operand);
      if (sub_buffers_.IsPart(root) || ReadsPartOf(step, root)) continue;
      auto it = std::find(dying->begin(), dying->end(), root);
      if (it == dying->end()) continue;
      plan_.storage[v] = plan_.storage[root];
      dying->erase(it);
      plan_.in_place++;
      return true;
    }
    return false;
  }

  bool ReadsPartOf(const Step& step, uint32_t whole) const {
    return std::ranges::any_of(
        step.in, [&](uint32_t v) { return v != kNoValue && l_.Root(v) != whole && Whole(v) == whole; });
  }

  const Lowered& l_;
  const PlanOptions& options_;
  const Binding& binding_;
  MemoryPlan plan_;
  Arena arena_;
  SubBuffers sub_buffers_;
  std::vector<bool> placed_;
  std::vector<size_t> last_use_;
};

}  // namespace

MemoryPlan PlanMemory(const Lowered& lowered, const PlanOptions& options, const Binding& binding,
                      const MemoryPlan& schedule) {
  auto plan = [&](bool parts) { return Planner(lowered, options, binding, schedule).Run(parts); };
  MemoryPlan with = plan(!options.observe && !lowered.accelerator);
  if (with.is_noop.empty()) return with;
  // A value with parts may be live long before its last part is computed; parts are dropped if that costs
  // more than an eighth of the arena.
  MemoryPlan without = plan(false);
  return with.arena_bytes <= without.arena_bytes + without.arena_bytes / 8 ? std::move(with)
                                                                           : std::move(without);
}

}  // namespace keel
