// gradient_cache.cc: builds the graph of a recording, its gradient and the plan; see gradient_cache.h.
#include "kernel/program/trace/gradient_cache.h"

#include <algorithm>

#include "kernel/program/grad/gradient.h"
#include "kernel/program/trace/key.h"
#include "kernel/runtime/plan/make_plan.h"

namespace keel {
namespace {

// The recording as a graph; feeds are the kept values and the seeds.
struct RecordedGraph {
  std::shared_ptr<Module> module;
  Graph* graph = nullptr;
  std::vector<ValueId> values, feeds, seeds;
};

absl::StatusOr<RecordedGraph> WriteGraph(std::shared_ptr<Catalogue> catalogue, const Recording& recording) {
  RecordedGraph w;
  w.module = std::make_shared<Module>(std::move(catalogue));
  ASSIGN_OR_RETURN(w.graph, w.module->AddGraph("gradient"));
  w.values.assign(recording.values.size(), kNoValue);
  for (size_t v = 0; v < w.values.size(); v++) {
    if (recording.values[v].computed) continue;
    ASSIGN_OR_RETURN(w.values[v], w.graph->AddParam("", recording.values[v].type));
  }
  auto at = [&](uint32_t v) { return v == kNoValue ? kNoValue : w.values[v]; };
  for (const Recording::Step& step : recording.steps) {
    std::vector<ValueId> in;
    for (uint32_t v : step.in) in.push_back(at(v));
    ASSIGN_OR_RETURN(std::vector<ValueId> out, (*step.taped)->Write(w.graph, std::move(in)));
    for (size_t r = 0; r < out.size(); r++)
      if (step.out[r] != kNoValue) w.values[step.out[r]] = out[r];
  }
  for (size_t v = 0; v < w.values.size(); v++)
    if (recording.values[v].kept) w.feeds.push_back(w.values[v]);
  for (size_t i = 0; i < recording.seeds.size(); i++) {
    w.seeds.push_back(kNoValue);
    if (!recording.seeds[i] || recording.ys[i] == kNoValue) continue;
    ASSIGN_OR_RETURN(w.seeds.back(), w.graph->AddParam("", recording.values[recording.ys[i]].type));
    w.feeds.push_back(w.seeds.back());
  }
  return w;
}

// The gradients of the known ys with respect to the known xs, one for each result.
absl::StatusOr<std::vector<ValueId>> WriteGradient(const Recording& recording, const RecordedGraph& w) {
  std::vector<ValueId> ys, seeds, xs;
  for (size_t i = 0; i < recording.ys.size(); i++) {
    if (recording.ys[i] == kNoValue) continue;
    ys.push_back(w.values[recording.ys[i]]);
    if (!w.seeds.empty()) seeds.push_back(w.seeds[i]);
  }
  for (uint32_t x : recording.xs)
    if (x != kNoValue) xs.push_back(w.values[x]);
  ASSIGN_OR_RETURN(std::vector<ValueId> made, recording.jacobian
                                                  ? Jacobians(*w.graph, ys, xs, recording.zeros)
                                                  : Gradient(*w.graph, {ys, seeds, xs, recording.zeros}));
  std::vector<ValueId> all;
  for (size_t i = 0, next = 0; i < recording.xs.size(); i++)
    all.push_back(recording.xs[i] == kNoValue ? kNoValue : made[next++]);
  return AddUp(w.graph, all, recording.to, recording.count);
}

}  // namespace

absl::StatusOr<std::vector<ValueId>> Jacobians(Graph& graph, std::span<const ValueId> ys,
                                               std::span<const ValueId> xs, bool zeros,
                                               const std::vector<bool>* through) {
  std::vector<ValueId> made(xs.size(), kNoValue);
  for (size_t i = 0; i < xs.size() && !ys.empty(); i++) {
    ASSIGN_OR_RETURN(made[i], Jacobian(graph, ys[0], xs[i], zeros, through));
  }
  return made;
}

absl::StatusOr<std::vector<ValueId>> AddUp(Graph* graph, std::span<const ValueId> parts,
                                           std::span<const uint32_t> to, size_t count) {
  std::vector<ValueId> sums(count, kNoValue);
  for (size_t i = 0; i < parts.size(); i++) {
    ValueId& sum = sums[to[i]];
    if (parts[i] == kNoValue || sum == kNoValue) {
      if (sum == kNoValue) sum = parts[i];
      continue;
    }
    ASSIGN_OR_RETURN(std::vector<ValueId> added,
                     GraphSink(*graph).Node("add", std::vector{sum, parts[i]}, {}));
    sum = added[0];
  }
  return sums;
}

std::string Recording::Key() const {
  std::string key;
  AppendBytes(&key, device);
  AppendBytes(&key, zeros);
  AppendBytes(&key, jacobian);
  for (const Step& step : steps) {
    AppendBytes(&key, step.taped->get());
    AppendList(&key, step.in);
    AppendList(&key, step.out);
  }
  for (const Value& value : values) {
    AppendBytes(&key, value.type.dtype);
    AppendBytes(&key, value.kept != nullptr);
    AppendBytes(&key, value.type.dims.size());
    for (Dim d : value.type.dims) AppendBytes(&key, d);
  }
  AppendList(&key, ys);
  AppendList(&key, xs);
  AppendList(&key, to);
  for (const keel_array* seed : seeds) AppendBytes(&key, seed != nullptr);
  return key;
}

absl::StatusOr<std::shared_ptr<GradientPlan>> GradientCache::Make(const Recording& recording,
                                                                  PlanOptions options) {
  auto made = std::make_shared<GradientPlan>();
  ASSIGN_OR_RETURN(RecordedGraph w, WriteGraph(catalogue_, recording));
  ASSIGN_OR_RETURN(std::vector<ValueId> dxs, WriteGradient(recording, w));
  std::vector<ValueId> fetches;
  for (ValueId dx : dxs) {
    made->connected.push_back(dx != kNoValue);
    if (dx != kNoValue) fetches.push_back(dx);
  }
  if (fetches.empty()) return made;
  options.results_on_device = true;
  ASSIGN_OR_RETURN(made->plan,
                   MakePlan({w.graph, recording.device, w.feeds, fetches, {}}, options, {&passes_, {}}));
  made->taped = Taped::Of(w.module, w.graph, w.feeds, fetches);
  return made;
}

absl::StatusOr<std::shared_ptr<const GradientPlan>> GradientCache::Find(const Recording& recording,
                                                                        const PlanOptions& options) {
  std::string key = recording.Key();
  std::lock_guard lock(mutex_);
  if (auto* known = plans_.Find([&](const auto& plan) { return plan->key == key; })) return *known;
  ASSIGN_OR_RETURN(std::shared_ptr<GradientPlan> made, Make(recording, options));
  made->key = std::move(key);
  for (const Recording::Step& step : recording.steps) made->alive.push_back(*step.taped);
  plans_.Add(made);
  return made;
}

std::shared_ptr<const Taped> GradientCache::Share(std::shared_ptr<const Taped> graph) {
  std::lock_guard lock(mutex_);
  if (auto* known = shared_.Find([&](const auto& g) { return Taped::SameGraphs(*g, *graph); })) return *known;
  shared_.Add(graph);
  return graph;
}

size_t GradientCache::plans() {
  std::lock_guard lock(mutex_);
  return plans_.size();
}

}  // namespace keel
