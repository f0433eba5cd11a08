// gradient_cache.h: plans of gradients, cached by the structure of the recording.
//
// A recording is cut to the part between sources and targets, renumbered and serialised to bytes. Equal bytes
// have equal gradients, so the second step of a training loop finds an optimised plan. An outer tape records
// such a gradient as one call of its graph and expands the nodes only to differentiate it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernel/base/mutex.h"
#include "kernel/base/recent.h"
#include "kernel/program/trace/taped.h"
#include "kernel/runtime/pass/pass.h"
#include "kernel/runtime/plan/plan.h"

namespace keel {

// The part of a tape between xs and ys; values are numbered in order of appearance. Recordings with equal
// keys have equal gradient graphs.
struct Recording {
  struct Step {
    const std::shared_ptr<const Taped>* taped;
    std::vector<uint32_t> in, out;  // kNoValue: omitted
  };
  struct Value {
    TensorType type;
    keel_array* kept = nullptr;  // elements, fed to the plan
    bool computed = false;       // result of a step
  };
  std::vector<Step> steps;
  std::vector<Value> values;
  std::vector<uint32_t> ys, xs;    // kNoValue: not recorded
  std::vector<uint32_t> to;        // by x: index of the result that it is added to
  uint32_t count = 0;              // number of results
  std::vector<keel_array*> seeds;  // null: ones
  bool zeros = false, jacobian = false;
  Device* device = nullptr;

  std::string Key() const;
};

// A gradient that is ready to run.
struct GradientPlan {
  std::string key;
  std::vector<std::shared_ptr<const Taped>> alive;  // owned because the key contains their addresses
  std::shared_ptr<Plan> plan;                       // null: nothing is connected
  std::shared_ptr<const Taped> taped;               // recorded by outer tapes
  std::vector<bool> connected;                      // by result
};

// Jacobians of ys[0] with respect to each x; kNoValue for each if ys is empty.
absl::StatusOr<std::vector<ValueId>> Jacobians(Graph& graph, std::span<const ValueId> ys,
                                               std::span<const ValueId> xs, bool zeros,
                                               const std::vector<bool>* through = nullptr);
// Sums the parts (kNoValue: none) of each of `count` results; to[i] is the result of parts[i], ascending.
absl::StatusOr<std::vector<ValueId>> AddUp(Graph* graph, std::span<const ValueId> parts,
                                           std::span<const uint32_t> to, size_t count);

class GradientCache {
 public:
  GradientCache(std::shared_ptr<Catalogue> catalogue, Passes& passes)
      : catalogue_(std::move(catalogue)), passes_(passes) {}
  // options: of a new plan.
  absl::StatusOr<std::shared_ptr<const GradientPlan>> Find(const Recording& recording,
                                                           const PlanOptions& options);
  // Returns an equal graph that was shared before, or `graph`; recordings then have equal keys.
  std::shared_ptr<const Taped> Share(std::shared_ptr<const Taped> graph);
  size_t plans();  // for tests

 private:
  absl::StatusOr<std::shared_ptr<GradientPlan>> Make(const Recording& recording, PlanOptions options);

  static constexpr size_t kMaxPlans = 64;
  std::shared_ptr<Catalogue> catalogue_;
  Passes& passes_;
  Mutex mutex_;
  Recent<std::shared_ptr<const GradientPlan>, kMaxPlans> plans_;
  Recent<std::shared_ptr<const Taped>, kMaxPlans> shared_;
};

}  // namespace keel
