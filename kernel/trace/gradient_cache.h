// gradient_cache.h: gradients of recordings as plans, kept by the recordings' structure.
#pragma once

#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernel/base/mutex.h"
#include "kernel/plan/plan.h"
#include "kernel/trace/taped.h"

namespace keel {

struct Context;

// The part of a tape between xs and ys, with values numbered in order of appearance. What of two recordings
// has the same key has the same gradient graph.
struct Recording {
  struct Step {
    const std::shared_ptr<const Taped>* what;
    std::vector<uint32_t> in, out;  // kNoValue: left out
  };
  struct Value {
    TensorType type;
    keel_array* kept = nullptr;  // its elements, which a plan is fed
    bool computed = false;       // by a step
  };
  std::vector<Step> steps;
  std::vector<Value> values;
  std::vector<uint32_t> ys, xs;    // kNoValue: not among the values
  std::vector<uint32_t> to;        // by x: the result that it counts for
  uint32_t count = 0;              // of results
  std::vector<keel_array*> seeds;  // null: ones
  bool zeros = false, jacobian = false;
  Device* device = nullptr;

  std::string Key() const;
};

// A gradient that is ready to run.
struct GradientPlan {
  std::string key;
  std::vector<std::shared_ptr<const Taped>> alive;  // the key has their addresses
  std::shared_ptr<Plan> plan;                       // null: nothing is connected
  std::shared_ptr<const Taped> taped;               // the graph, for tapes around this one
  std::vector<bool> connected;                      // by result
};

// One for each x; of no y: kNoValue.
absl::StatusOr<std::vector<ValueId>> Jacobians(Graph& graph, std::span<const ValueId> ys,
                                               std::span<const ValueId> xs, bool zeros,
                                               const std::vector<bool>* through = nullptr);
// Adds up the parts (kNoValue: none) of each of `count` results, which `to` names in ascending order.
absl::StatusOr<std::vector<ValueId>> AddUp(Graph* graph, std::span<const ValueId> parts,
                                           std::span<const uint32_t> to, size_t count);

class GradientCache {
 public:
  absl::StatusOr<std::shared_ptr<const GradientPlan>> Find(Context& context, const Recording& recording);
  // The graph, or the one like it that was shared before: recordings of both have the same key then.
  std::shared_ptr<const Taped> Share(std::shared_ptr<const Taped> graph);
  size_t plans();  // for tests

 private:
  static constexpr size_t kMost = 64;
  Mutex mutex_;
  std::list<std::shared_ptr<const GradientPlan>> plans_;  // used last first
  std::list<std::shared_ptr<const Taped>> shared_;        // so, too
};

}  // namespace keel
