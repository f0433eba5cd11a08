// frame_core.cc: builds the CoreRuns of a frame (core.h).
#include <algorithm>

#include "kernel/runtime/plan/frame.h"

namespace keel {
namespace {

bool InArray(const Storage& at) { return at.kind == Storage::kVariable || at.kind == Storage::kAssigned; }

// The first and the last step that read or write the array of a core step.
struct Uses {
  size_t first, last;
};
std::vector<Uses> FindUses(const Lowered& lowered, const Binding& binding) {
  std::vector<Uses> uses;
  for (size_t s = 0; s < lowered.steps.size(); s++) uses.push_back({s, s});
  auto use = [&](uint32_t v, size_t s) {
    if (v == kNoValue || !InArray(binding.storage[v])) return;
    Uses& of = uses[binding.storage[v].place];
    of = {std::min(of.first, s), std::max(of.last, s)};
  };
  for (size_t s = 0; s < lowered.steps.size(); s++) {
    for (uint32_t v : lowered.steps[s].in) use(v, s);
    for (uint32_t v : lowered.steps[s].out) use(v, s);
  }
  for (uint32_t v : lowered.fetches) use(v, lowered.steps.size());
  return uses;
}

// By variable of the module: the steps that write it.
std::vector<std::vector<size_t>> FindWrites(const std::vector<Step>& steps) {
  std::vector<std::vector<size_t>> writes;
  for (size_t s = 0; s < steps.size(); s++) {
    if (!steps[s].core || !steps[s].core->variable) continue;
    const size_t number = steps[s].core->number;
    if (writes.size() <= number) writes.resize(number + 1);
    if (steps[s].core->writes) writes[number].push_back(s);
  }
  return writes;
}

void Push(CoreRun* run, CoreRun* CoreRun::*link, CoreRun** list) {
  run->*link = *list;
  *list = run;
}

}  // namespace

void Frame::BuildCore() {
  const std::vector<Step>& steps = lowered_.steps;
  const auto count = std::ranges::count_if(steps, [](const Step& step) { return step.core != nullptr; });
  if (!count) return;
  core_.resize(static_cast<size_t>(count));
  core_of_.resize(steps.size());
  CoreRun* run = core_.data();
  for (size_t s = 0; s < steps.size(); s++) {
    if (!steps[s].core) continue;
    run->core = steps[s].core.get();
    run->variable = run->core->variable.get();
    core_of_[s] = run++;
    if (!steps[s].core->writes) continue;
    const Storage& at = binding_.storage[steps[s].in[0]];
    if (at.kind == Storage::kVariable &&
        std::ranges::equal(binding_.shapes[steps[at.place].out[0]], core_of_[s]->variable->shape()))
      core_of_[s]->shares = core_of_[at.place];
  }
  BuildCoreViews();
  LinkCore();
}

void Frame::BuildCoreViews() {
  std::vector<std::vector<keel_tensor*>> views(lowered_.steps.size());
  for (uint32_t v = 0; v < views_.size(); v++)
    if (const Storage& at = binding_.storage[v]; InArray(at)) views[at.place].push_back(&views_[v]);
  for (const auto& of : views) core_views_.insert(core_views_.end(), of.begin(), of.end());
  keel_tensor** at = core_views_.data();
  for (size_t s = 0; s < views.size(); at += views[s++].size())
    if (core_of_[s]) core_of_[s]->views = {at, views[s].size()};
}

// Arrays are allocated as late and released as early as possible, so that their memory is likely still in a
// cache, and so that a variable whose array has no other owner is updated in place. Steps never move across a
// write, so their order is the order of execution.
void Frame::LinkCore() {
  const std::vector<Uses> uses = FindUses(lowered_, binding_);
  const std::vector<std::vector<size_t>> writes = FindWrites(lowered_.steps);
  std::vector<size_t> assigns;
  for (size_t s = 0; s < core_of_.size(); s++) {
    CoreRun* run = core_of_[s];
    if (!run || !run->variable) continue;
    if (run->core->takes_array) assigns.push_back(s);
    if (run->Computes()) {
      auto before = std::ranges::lower_bound(assigns, uses[s].first);
      Push(run, &CoreRun::next_allocated,
           before == assigns.begin() ? &allocate_first_ : &core_of_[before[-1]]->allocates);
    }
    if (!run->core->reads && !run->Computes()) continue;
    const std::vector<size_t>& all = writes[run->core->number];
    auto write = std::ranges::upper_bound(all, uses[s].last);
    Push(run, &CoreRun::next_released, write == all.end() ? &release_last_ : &core_of_[*write]->releases);
  }
}

}  // namespace keel
