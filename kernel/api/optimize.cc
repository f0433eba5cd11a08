// optimize.cc: passes on a module (keel.h).
#include "kernel/api/handles.h"

using namespace keel;

namespace {

struct OptimizeOptions {
  PlanOptions options;
  PassChoice passes;
};

constexpr Option kOptions[] = {
    {"threads",
     [](void* w, const std::string& v) {
       return SetThreads(v, &static_cast<OptimizeOptions*>(w)->options.threads);
     }},
    {"memory",
     [](void* w, const std::string& v) {
       return SetMemory(v, &static_cast<OptimizeOptions*>(w)->options.memory);
     }},
    {"level",
     [](void* w, const std::string& v) { return SetLevel(v, &static_cast<OptimizeOptions*>(w)->passes); }},
    {"passes",
     [](void* w, const std::string& v) { return ParsePasses(v, &static_cast<OptimizeOptions*>(w)->passes); }},
    {"fuel",
     [](void* w, const std::string& v) -> absl::Status {
       ASSIGN_OR_RETURN(static_cast<OptimizeOptions*>(w)->passes.fuel, ParseNumber("fuel", v, 0, UINT64_MAX));
       return absl::OkStatus();
     }},
    {"dump_after",
     [](void* w, const std::string& v) {
       static_cast<OptimizeOptions*>(w)->passes.dump = v;
       return absl::OkStatus();
     }},
};

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
        OptimizeOptions wanted{state.context->Options(), {}};
        RETURN_IF_ERROR(SetOptions(kOptions, options, n_options, &wanted));
        ASSIGN_OR_RETURN(Device * target, state.context->registry.FindDevice(device));
        std::lock_guard lock(state.mutex);
        ASSIGN_OR_RETURN(const Entry* found, state.module->FindEntry(entry ? entry : ""));
        PassReport done;
        ASSIGN_OR_RETURN(std::shared_ptr<Module> better,
                         OptimizeModule(state.context->passes, wanted.passes,
                                        *state.module->graphs[found->graph], target, wanted.options, &done));
        if (better) RETURN_IF_ERROR(Adopt(state, std::move(better)));
        if (!report) return absl::OkStatus();
        Json json;
        json.BeginObject();
        done.Write(json);
        json.EndObject();
        return GiveText(json.Take(), report);
      });
}
