// plan.h: the frozen executable of one (graph, feeds, fetches, targets, device), shared by threads. A Binding
// holds the size-dependent state (the 16 used last are kept), a Runner the state of one run. A warm run takes
// an idle runner by one atomic exchange, compares the shapes of the feeds with the runner's, and returns it:
// no lock, no allocation, no search.
#pragma once

#include <list>
#include <memory>
#include <span>
#include <string>

#include "kernel/base/json.h"
#include "kernel/base/mutex.h"
#include "kernel/base/slot_cache.h"
#include "kernel/plan/binding.h"
#include "kernel/plan/runner.h"

namespace keel {

struct Event {  // the argument of an observer, after a launch
  const Step& step;
  const keel_call& call;
  size_t index;
  Moment when;
};
using Observer = bool (*)(void* arg, const Lowered& lowered, const Event& event);

struct Parts;      // place.h
struct Placing;    // place.h
struct Optimizer;  // optimize.h

class Plan {
 public:
  ~Plan();
  static absl::StatusOr<std::shared_ptr<Plan>> Make(const Graph& graph, Device* device,
                                                    std::span<const ValueId> feeds,
                                                    std::span<const ValueId> fetches,
                                                    std::span<const NodeId> targets,
                                                    const PlanOptions& options);
  // With nodes on several devices; each part is optimised for its own device.
  static absl::StatusOr<std::shared_ptr<Plan>> MakePlaced(const Graph& graph, Device* device,
                                                          const Placing& placing, const Optimizer& optimizer,
                                                          std::span<const ValueId> feeds,
                                                          std::span<const ValueId> fetches,
                                                          std::span<const NodeId> targets,
                                                          const PlanOptions& options);
  const Lowered& lowered() const { return *lowered_; }
  bool observable() const { return options_.observe || options_.profile; }
  size_t inputs() const { return lowered_->feeds.size(); }
  size_t outputs() const { return lowered_->fetches.size(); }
  // `end`: the deadline of the enclosing run, if this run is a part of another.
  absl::Status Run(std::span<keel_array* const> in, std::span<ArrayRef> out, Observer observer = nullptr,
                   void* arg = nullptr, const Deadline* end = nullptr);
  // The values of these symbols, found by name, in a run with these feeds; an error if the feeds do not fit.
  absl::StatusOr<std::vector<int64_t>> Sizes(std::span<keel_array* const> in, const DimTable& symbols);
  // JSON; with the sizes of values that are known or determined by `in`.
  absl::StatusOr<std::string> Report(std::span<keel_array* const> in);

 private:
  Plan(std::unique_ptr<Lowered> lowered, PlanOptions options);
  // A runner with the types and shapes that it was built for.
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

  // Launches on the timeline (plan_timeline.cc).
  absl::Status RunShown(std::span<keel_array* const> in, std::span<ArrayRef> out, const Deadline* end);
  absl::Status RunWatched(std::span<keel_array* const> in, std::span<ArrayRef> out, Observer observer,
                          void* arg, const Deadline* end);
  absl::Status RunCold(std::span<keel_array* const> in, std::span<ArrayRef> out, Observer observer, void* arg,
                       const Deadline* end);
  absl::StatusOr<std::shared_ptr<Binding>> FindBinding(std::span<keel_array* const> in);
  std::unique_ptr<Ready> TakeIdle(std::span<keel_array* const> in);
  absl::StatusOr<std::unique_ptr<Ready>> MakeReady(std::span<keel_array* const> in);
  void GiveBack(std::unique_ptr<Ready> ready);
  static void Park(std::unique_ptr<Ready> ready);
  absl::Status CheckFeeds(std::span<keel_array* const> in) const;
  absl::Status RunElsewhere(std::span<keel_array* const> in, std::span<ArrayRef> out, Observer observer,
                            void* arg, const Deadline* end);
  void ReportParts(Json& json, const Binding* binding) const;
  std::shared_ptr<const PassReport> JoinPasses() const;  // of all parts

  static constexpr size_t kBindings = 16, kIdle = 8;
  SlotCache<Ready, kIdle> idle_;
  std::unique_ptr<Lowered> lowered_;
  std::unique_ptr<Parts> parts_;  // of a placed plan
  PlanOptions options_;
  Mutex mutex_;
  std::list<std::shared_ptr<Binding>> bindings_;  // used last first
};

}  // namespace keel
