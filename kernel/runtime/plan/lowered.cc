// lowered.cc: see lowered.h.
#include "kernel/runtime/plan/lowered.h"

#include "kernel/base/align.h"
#include "kernel/runtime/device/accelerator.h"

namespace keel {

uint32_t NumberSteps(Lowered* lowered, uint32_t first) {
  lowered->first_step = first;
  first += static_cast<uint32_t>(lowered->steps.size());
  for (Step& step : lowered->steps)
    for (auto& body : step.bodies) first = NumberSteps(body.get(), first);
  return first;
}

uint32_t CountSteps(const Lowered& lowered) {
  auto count = static_cast<uint32_t>(lowered.steps.size());
  for (const Step& step : lowered.steps) {
    for (const auto& body : step.bodies) count += CountSteps(*body);
    for (const PlannedBody& body : step.plans) count += body.launches;
  }
  return count;
}

const Step* FindStep(const Lowered& lowered, uint32_t number) {
  if (number >= lowered.first_step && number - lowered.first_step < lowered.steps.size())
    return &lowered.steps[number - lowered.first_step];
  for (const Step& step : lowered.steps)
    for (const auto& body : step.bodies)
      if (const Step* found = FindStep(*body, number)) return found;
  return nullptr;
}

uint64_t AlignmentOf(const Lowered& lowered) {
  return lowered.accelerator ? lowered.accelerator->alignment() : kAlign;
}

}  // namespace keel
