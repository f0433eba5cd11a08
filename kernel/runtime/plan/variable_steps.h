// variable_steps.h: variable ops in plans for devices with their own memory, and of eager programs, trim, and
// control ops with new sizes in their bodies.
// They pass arrays on, in whichever memory these are, so nothing is copied. Only trim and control ops wait,
// for a count or a predicate.
//
// How to read it: MakePlacedPlan gives the variable ops of a plan to CoreServices::variables, so that they
// are parts of their own (parts.h); Parts::Run calls RunVariablePart.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernel/base/mutex.h"
#include "kernel/runtime/plan/plan.h"

namespace keel {

// Plans that add or subtract two arrays of one type on a device. Thread-safe.
class SumPlans {
 public:
  explicit SumPlans(std::shared_ptr<Catalogue> catalogue) : catalogue_(std::move(catalogue)) {}
  // The sum, on the device; Unimplemented if the device cannot add them.
  absl::StatusOr<ArrayRef> Add(Device* device, keel_array* a, keel_array* b, bool subtract);

 private:
  using Key = std::tuple<Device*, bool, DType, Dims>;  // bool: subtract
  absl::StatusOr<std::shared_ptr<Plan>> Find(Device* device, const keel_array* like, bool subtract);

  const std::shared_ptr<Catalogue> catalogue_;
  Mutex mutex_;
  std::map<Key, std::shared_ptr<Plan>> sums_;  // null: the device cannot add them
};

// The device whose memory contains the array; null: host memory, or the device is not known.
using FindDevice = absl::FunctionRef<Device*(const keel_array* array)>;
// Adds to the variable, atomically: on the device of x, else on that of the variable, else on the host.
// pending: the runs on which the write depends; receives those of the variable.
absl::Status AddToVariable(Variable& variable, keel_array* x, bool subtract, FindDevice find, SumPlans& sums,
                           PendingRuns* pending);

struct VariablePart {
  const Lowered& lowered;
  std::span<keel_array* const> feeds;
  const std::vector<bool>& shared;  // by feed: the program may write it, so variables need a copy
  std::span<ArrayRef> results;
  const EventForwarder* events;  // of bodies; null: none
  const Deadline* end;           // of the run; null: none
};
absl::Status RunVariablePart(const VariablePart& part, FindDevice find, SumPlans& sums, PendingRuns* pending);

}  // namespace keel
