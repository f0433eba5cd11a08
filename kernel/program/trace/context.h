// context.h: the state of a keel_context: ops, plugins and settings. Contexts share nothing.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "kernel/program/trace/gradient_cache.h"
#include "kernel/runtime/plan/core.h"
#include "kernel/runtime/plan/make_plan.h"
#include "kernel/runtime/plan/stop.h"
#include "kernel/runtime/plan/variable_steps.h"
#include "kernel/runtime/plugin/registry.h"
#include "kernel/runtime/rules/rules.h"

namespace keel {

struct Context {
  std::shared_ptr<Catalogue> catalogue = std::make_shared<Catalogue>();
  Registry registry{catalogue, ReadRules};
  Passes passes{registry};
  uint32_t threads = 1;
  uint64_t memory = 0;
  std::string plugins;  // replaces the plugin folder next to libkeel
  Stopper stopper;
  GradientCache gradients{catalogue, passes};
  SumPlans sums{catalogue};  // of eager writes of variables
  CoreServices core;
  std::atomic<bool> eager{false};  // functions run their program eagerly, without tracing
  PlanOptions Options() {
    PlanOptions options;
    options.threads = threads;
    options.memory = memory;
    options.host = registry.FirstHostDevice();
    options.stopper = &stopper;
    options.core = &core;
    return options;
  }
};

}  // namespace keel
