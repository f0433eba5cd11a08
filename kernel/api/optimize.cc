// optimize.cc: passes on a module (keel.h).
#include "kernel/api/handles.h"
#include "kernel/api/options.h"

using namespace keel;

namespace {

// Graph handles move to the new module; sessions keep the graph that they were created for.
absl::Status Adopt(ModuleState& state, std::shared_ptr<Module> module) {
  for (auto& handle : state.graphs) {
    ASSIGN_OR_RETURN(handle->graph, module->FindGraph(handle->graph->name));
  }
  state.before.push_back(std::exchange(state.module, std::move(module)));
  return absl::OkStatus();
}

}  // namespace

keel_rc keel_module_optimize(keel_module* m, const char* entry, const char* device, const keel_kv* options,
                             uint32_t n_options, keel_text** report, keel_error** err) {
  return Guard(
      err, "module device options[n_options]", {m, device, options, n_options}, [&]() -> absl::Status {
        ModuleState& state = *m->state;
        PlanOptions plan = state.context->Options();
        PassChoice passes;
        RETURN_IF_ERROR(
            SetOptions({Option::Threads(&plan.threads), Option::Memory(&plan.memory), Option::Level(&passes),
                        Option::Passes(&passes), Option::Number("fuel", &passes.fuel, 0, UINT64_MAX),
                        Option::Text("dump_after", &passes.dump)},
                       options, n_options));
        ASSIGN_OR_RETURN(Device * target, state.context->registry.FindDevice(device));
        std::lock_guard lock(state.mutex);
        ASSIGN_OR_RETURN(const Entry* found, state.module->FindEntry(entry ? entry : ""));
        PassReport done;
        ASSIGN_OR_RETURN(std::shared_ptr<Module> better,
                         OptimizeModule(state.context->passes, passes, *state.module->graphs[found->graph],
                                        target, plan, &done));
        if (better) RETURN_IF_ERROR(Adopt(state, std::move(better)));
        if (!report) return absl::OkStatus();
        Json json;
        json.BeginObject();
        done.Write(json);
        json.EndObject();
        return Give(json.Take(), report);
      });
}
