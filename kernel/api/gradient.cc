// gradient.cc: graphs that are there already, of keel.h: finding them and their values, copies, gradients.
#include "kernel/grad/gradient.h"

#include "kernel/api/handles.h"

using namespace keel;

namespace {

// The one handle of a graph; its module owns it.
keel_graph* HandleOf(ModuleState& state, Graph* graph) {
  for (const auto& handle : state.graphs)
    if (handle->graph == graph) return handle.get();
  state.graphs.push_back(std::make_unique<keel_graph>(keel_graph{&state, graph}));
  return state.graphs.back().get();
}

}  // namespace

keel_rc keel_module_graph(keel_module* m, const char* entry, keel_graph** out, keel_error** err) {
  return Guard(err, "module out", {m, out}, [&]() -> absl::Status {
    std::lock_guard lock(m->state->mutex);
    ASSIGN_OR_RETURN(const Entry* found, m->state->module->FindEntry(entry ? entry : ""));
    *out = HandleOf(*m->state, m->state->module->graphs[found->graph].get());
    return absl::OkStatus();
  });
}

keel_rc keel_graph_find(keel_graph* g, const char* name, keel_value* out, keel_error** err) {
  return Guard(err, "graph name out", {g, name, out}, [&]() -> absl::Status {
    std::lock_guard lock(g->owner->mutex);
    ASSIGN_OR_RETURN(*out, g->graph->Find(name));
    return absl::OkStatus();
  });
}

keel_rc keel_graph_copy(keel_graph* g, const char* name, keel_graph** out, keel_error** err) {
  return Guard(err, "graph out", {g, out}, [&]() -> absl::Status {
    std::lock_guard lock(g->owner->mutex);
    Graph same = *g->graph;  // before the module changes: memory may run out
    ASSIGN_OR_RETURN(Graph * copy, g->graph->module->AddGraph(name ? name : ""));
    same.name = std::move(copy->name);
    same.called = false;
    same.results.clear();
    same.result_names.clear();
    *copy = std::move(same);
    *out = HandleOf(*g->owner, copy);
    return absl::OkStatus();
  });
}

keel_rc keel_graph_gradient(keel_graph* g, const keel_value* ys, uint32_t n_ys, const keel_value* seeds,
                            const keel_value* xs, uint32_t n_xs, uint32_t flags, keel_value* dxs,
                            keel_error** err) {
  return Guard(err, "graph ys[n_ys] xs[n_xs] dxs[n_xs]", {g, ys, n_ys, xs, n_xs, dxs, n_xs},
               [&]() -> absl::Status {
                 if (flags & ~KEEL_GRADIENT_ZEROS) return Invalid("gradient: unknown flags ", flags);
                 std::lock_guard lock(g->owner->mutex);
                 GradientRequest wanted{{ys, n_ys}, {}, {xs, n_xs}, (flags & KEEL_GRADIENT_ZEROS) != 0};
                 if (seeds) wanted.seeds = {seeds, n_ys};
                 ASSIGN_OR_RETURN(std::vector<ValueId> found, Gradient(*g->graph, wanted));
                 std::copy(found.begin(), found.end(), dxs);
                 return absl::OkStatus();
               });
}

keel_rc keel_graph_jacobian(keel_graph* g, keel_value y, keel_value x, keel_value* out, keel_error** err) {
  return Guard(err, "graph out", {g, out}, [&]() -> absl::Status {
    std::lock_guard lock(g->owner->mutex);
    ASSIGN_OR_RETURN(*out, Jacobian(*g->graph, y, x));
    return absl::OkStatus();
  });
}
