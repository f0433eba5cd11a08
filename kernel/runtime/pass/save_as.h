// save_as.h: saves a graph in the format of an importer plugin.
#pragma once

#include <string>

#include "kernel/language/graph/graph.h"
#include "kernel/runtime/plugin/registry.h"

namespace keel {

// As the ending of the path says: the only entry in the format of an importer plugin that can save, or the
// module as a Keel file. Atomic.
absl::Status SaveAs(Registry& registry, const Module& module, const std::string& path);

}  // namespace keel
