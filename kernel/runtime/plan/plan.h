// plan.h: the immutable executable of one (graph, feeds, fetches, targets, device). Thread-safe. A Binding
// holds the state that depends on sizes; the plan keeps the 16 most recently used bindings. A Runner holds
// the state of one run. A warm run takes an idle runner with one atomic exchange, checks that the feeds'
// shapes equal its shapes, and returns it: no lock, no allocation, no search.
#pragma once

#include <list>
#include <memory>
#include <span>
#include <string>

#include "kernel/base/json.h"
#include "kernel/base/mutex.h"
#include "kernel/base/slot_cache.h"
#include "kernel/runtime/plan/bind.h"
#include "kernel/runtime/plan/options.h"
#include "kernel/runtime/plan/request.h"
#include "kernel/runtime/plan/runner.h"

namespace keel {

struct Event {  // passed to the observer after each launch
  const Step& step;
  const keel_call& call;
  size_t index;
  Moment when;
};
using Observer = bool (*)(void* arg, const Lowered& lowered, const Event& event);

// Forwards events of a plan within a plan, with the numbers of its launches in the outer one.
struct EventForwarder {
  Observer observer;  // null: none
  void* arg;
  size_t before;  // the number of its first launch in the outer plan
};
bool ForwardEvent(void* forwarder, const Lowered& lowered, const Event& event);

class Plan;

// How a plan runs on several devices, and why (parts.h).
class Placement {
 public:
  virtual ~Placement() = default;
  virtual absl::Status Run(std::span<keel_array* const> in, std::span<ArrayRef> out, Observer observer,
                           void* arg, const Deadline* end) const = 0;
  virtual std::vector<const Plan*> Plans() const = 0;  // of the parts; none: the plan runs on its own device
  // whole: of the plan of all parts.
  virtual void Report(Json& json, const Lowered& whole, const Binding* binding) const = 0;
};

class Plan {
 public:
  ~Plan();
  // A plan for one device, which must be able to run all needed nodes; see make_plan.h for others.
  static absl::StatusOr<std::shared_ptr<Plan>> Make(const PlanRequest& request, const PlanOptions& options);
  // lowered: the whole graph, for sizes and names.
  Plan(std::shared_ptr<Lowered> lowered, PlanOptions options);
  void SetPlacement(std::unique_ptr<Placement> placement);
  const Lowered& lowered() const { return *lowered_; }
  const PlanOptions& options() const { return options_; }
  std::vector<const Plan*> Parts() const;  // if it is one, itself
  uint32_t Launches() const;               // of the plan and all its bodies
  bool observable() const { return options_.observe || options_.profile; }
  size_t inputs() const { return lowered_->feeds.size(); }
  size_t outputs() const { return lowered_->fetches.size(); }
  // Thread-safe. `end`: deadline of the enclosing run; null: the plan's own time limit applies.
  absl::Status Run(std::span<keel_array* const> in, std::span<ArrayRef> out, Observer observer = nullptr,
                   void* arg = nullptr, const Deadline* end = nullptr);
  // For repeated runs of a plan on one device with its own memory, with row-major feeds of these shapes.
  absl::StatusOr<std::shared_ptr<Binding>> FindBinding(std::span<keel_array* const> in);
  // By symbol; 0: the feeds do not determine it.
  absl::StatusOr<std::vector<int64_t>> SolveSymbols(std::span<keel_array* const> in) const;
  absl::Status RunBound(Binding& binding, std::span<keel_array* const> in, std::span<ArrayRef> out) const;
  // The numbers of `symbols`, matched by name, for a run with these feeds; fails if the feeds have the wrong
  // shapes or dtypes.
  absl::StatusOr<std::vector<int64_t>> Sizes(std::span<keel_array* const> in, const DimTable& symbols);
  // A JSON report; includes sizes of values if the plan has no symbols or if `in` is not empty.
  absl::StatusOr<std::string> Report(std::span<keel_array* const> in);

 private:
  // A runner with its binding and the types of the feeds that it was built for.
  struct Ready {
    struct Feed {
      uint8_t type_key;
      const int64_t* dims;
    };
    std::shared_ptr<Binding> binding;
    std::unique_ptr<Runner> runner;
    std::vector<Feed> feeds;
    bool Fits(std::span<keel_array* const> in) const;
  };

  // Runs with its launches on the timeline (plan_timeline.cc).
  absl::Status RunShown(std::span<keel_array* const> in, std::span<ArrayRef> out, const Deadline* end);
  absl::Status RunWatched(std::span<keel_array* const> in, std::span<ArrayRef> out, Observer observer,
                          void* arg, const Deadline* end);
  absl::Status RunCold(std::span<keel_array* const> in, std::span<ArrayRef> out, Observer observer, void* arg,
                       const Deadline* end);
  std::unique_ptr<Ready> TakeIdle(std::span<keel_array* const> in);
  absl::StatusOr<std::unique_ptr<Ready>> MakeReady(std::span<keel_array* const> in);
  absl::Status CheckFeeds(std::span<keel_array* const> in) const;
  absl::Status RunElsewhere(std::span<keel_array* const> in, std::span<ArrayRef> out, Observer observer,
                            void* arg, const Deadline* end);
  // plan_decline.cc: impls that decline sizes are replaced.
  absl::StatusOr<std::shared_ptr<Binding>> BindOrReplace(std::vector<int64_t> symbols,
                                                         std::shared_ptr<Lowered> own = nullptr) const;
  bool ReplaceDeclined(std::span<keel_array* const> in, const absl::Status& why);
  absl::Status RunChosen(std::span<keel_array* const> in, std::span<ArrayRef> out, Observer observer,
                         void* arg, const Deadline* end);
  const std::shared_ptr<Lowered>& LoweredOf(const Binding& b) const { return b.own ? b.own : lowered_; }

  static constexpr size_t kBindings = 16, kIdle = 16;
  SlotCache<Ready, kIdle> idle_;
  std::shared_ptr<Lowered> lowered_;      // shared with outcomes of runs in flight
  std::unique_ptr<Placement> placement_;  // null: not placed
  bool split_ = false;                    // runs in parts
  PlanOptions options_;
  Mutex mutex_;
  std::list<std::shared_ptr<Binding>> bindings_;  // most recently used first
};

}  // namespace keel
