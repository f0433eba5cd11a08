// plan.h: the frozen executable of one (graph, feeds, fetches, targets, device). Shared by threads; what
// depends on sizes is a Binding, of which the 16 used last are kept; what one run needs is a Runner.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "kernel/plan/binding.h"
#include "kernel/plan/runner.h"

namespace keel {

struct Event {  // what an observer sees after a launch
  const Step& step;
  const keel_call& call;
  size_t index;
};
using Observer = bool (*)(void* arg, const Lowered& lowered, const Event& event);

class Plan {
 public:
  static absl::StatusOr<std::shared_ptr<Plan>> Make(const Graph& graph, Device* device,
                                                    std::span<const ValueId> feeds,
                                                    std::span<const ValueId> fetches,
                                                    std::span<const ValueId> targets,
                                                    const PlanOptions& options);
  size_t inputs() const { return lowered_->feeds.size(); }
  size_t outputs() const { return lowered_->fetches.size(); }
  absl::Status Run(std::span<keel_array* const> in, std::span<ArrayRef> out, Observer observer = nullptr,
                   void* arg = nullptr);
  // JSON; with sizes of values where they are known or `in` gives them.
  absl::StatusOr<std::string> Report(std::span<keel_array* const> in);

 private:
  explicit Plan(std::unique_ptr<Lowered> lowered, PlanOptions options)
      : lowered_(std::move(lowered)), options_(options) {}
  absl::StatusOr<std::shared_ptr<Binding>> FindBinding(std::span<keel_array* const> in);
  absl::StatusOr<std::unique_ptr<Runner>> Borrow(const std::shared_ptr<Binding>& binding);
  absl::Status CheckFeeds(std::span<keel_array* const> in) const;

  static constexpr size_t kBindings = 16;
  std::unique_ptr<Lowered> lowered_;
  PlanOptions options_;
  std::mutex mutex_;
  std::list<std::shared_ptr<Binding>> bindings_;  // used last first
};

}  // namespace keel
