// gradient.cc: existing graphs (keel.h): lookup of graphs and values, copies, gradients.
#include "kernel/program/grad/gradient.h"

#include <optional>

#include "kernel/api/handles.h"
#include "kernel/program/trace/gradient_cache.h"

using namespace keel;

namespace {

// The one handle of a graph; its module owns it.
keel_graph* HandleOf(ModuleState& state, Graph* graph) {
  for (const auto& handle : state.graphs)
    if (handle->graph == graph) return handle.get();
  state.graphs.push_back(std::make_unique<keel_graph>(keel_graph{&state, graph}));
  return state.graphs.back().get();
}

// Jacobians of the single y with respect to each x. An error leaves the graph unchanged.
absl::StatusOr<std::vector<ValueId>> AllJacobians(Graph& graph, const GradientRequest& wanted) {
  const size_t graphs = graph.module->graphs.size();
  std::optional<Graph> before;  // a single Jacobian undoes its own changes
  if (wanted.xs.size() > 1) before = graph;
  absl::StatusOr<std::vector<ValueId>> found =
      Jacobians(graph, wanted.ys, wanted.xs, wanted.zeros, wanted.through);
  if (!found.ok() && before) {
    graph = *std::move(before);
    DropUnused(graph.module, graphs);
  }
  return found;
}

}  // namespace

absl::Status keel::CheckGradientFlags(std::string_view function, uint32_t flags, uint32_t n_ys, bool seeds) {
  if (flags & ~(KEEL_GRADIENT_ZEROS | KEEL_GRADIENT_JACOBIAN))
    return Invalid(function, ": 'flags' is ", flags, "; the flags are KEEL_GRADIENT_ZEROS (1) and ",
                   "KEEL_GRADIENT_JACOBIAN (2)");
  if (!(flags & KEEL_GRADIENT_JACOBIAN)) return absl::OkStatus();
  if (n_ys != 1) return Invalid(function, ": 'n_ys' is ", n_ys, "; KEEL_GRADIENT_JACOBIAN requires one y");
  if (seeds) return Invalid(function, ": 'seeds' is not NULL; KEEL_GRADIENT_JACOBIAN takes no seeds");
  return absl::OkStatus();
}

keel_rc keel_module_graph(keel_module* m, const char* entry, keel_graph** out, keel_error** err) {
  return GuardModule(m, err, "module out", {m, out}, [&](Module& module) -> absl::Status {
    ASSIGN_OR_RETURN(const Entry* found, module.FindEntry(entry ? entry : ""));
    *out = HandleOf(*m->state, module.graphs[found->graph].get());
    return absl::OkStatus();
  });
}

keel_rc keel_graph_new(keel_module* m, const char* name, keel_graph* copy_of, keel_graph** out,
                       keel_error** err) {
  return Guard(err, "out", {out}, [&, caller = __func__]() -> absl::Status {
    if (!m && !copy_of)
      return Invalid(caller, ": 'module' and 'copy_of' are both NULL; at least one is required");
    ModuleState& state = m ? *m->state : *copy_of->owner;
    if (copy_of && copy_of->owner != &state)
      return Invalid(caller, ": 'copy_of' is a graph of another module");
    std::lock_guard lock(state.mutex);
    std::optional<Graph> same;  // before the module changes: memory may run out
    if (copy_of) same = *copy_of->graph;
    ASSIGN_OR_RETURN(Graph * made, state.module->AddGraph(name ? name : ""));
    if (same) {
      same->name = std::move(made->name);
      same->called = false;
      same->results.clear();
      same->result_names.clear();
      *made = *std::move(same);
    }
    *out = HandleOf(state, made);
    return absl::OkStatus();
  });
}

keel_rc keel_graph_gradient(keel_graph* g, const keel_value* ys, uint32_t n_ys, const keel_value* seeds,
                            const keel_value* xs, uint32_t n_xs, uint32_t flags, keel_value* dxs,
                            keel_error** err) {
  return GuardGraph(
      g, err, "graph ys[n_ys] xs[n_xs] dxs[n_xs]", {g, ys, n_ys, xs, n_xs, dxs, n_xs},
      [&](Graph& graph) -> absl::Status {
        RETURN_IF_ERROR(CheckGradientFlags("keel_graph_gradient", flags, n_ys, seeds != nullptr));
        GradientRequest wanted{{ys, n_ys}, {}, {xs, n_xs}, (flags & KEEL_GRADIENT_ZEROS) != 0};
        if (seeds) wanted.seeds = {seeds, n_ys};
        const bool jacobian = (flags & KEEL_GRADIENT_JACOBIAN) != 0;
        ASSIGN_OR_RETURN(std::vector<ValueId> found,
                         jacobian ? AllJacobians(graph, wanted) : Gradient(graph, wanted));
        std::copy(found.begin(), found.end(), dxs);
        return absl::OkStatus();
      });
}
