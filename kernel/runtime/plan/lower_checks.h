// lower_checks.h: conditions that a plan checks for its feeds, and errors of lowering.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernel/runtime/plan/lowered.h"

namespace keel {

// Adds the rules of the graph whose sizes are fed; feeds may have cut off the parameters of the others.
void AddRules(const Graph& graph, Lowered& lowered);
// A type declared in the graph may be more specific than the inferred type of the value; the binding checks
// it.
absl::Status AddDeclaredType(std::string_view name, const TensorType& type, uint32_t value, Lowered& lowered);
// Nodes of a body that run even if their results are unused. strict: all.
std::vector<NodeId> BodyTargets(const Graph& body, bool strict);
// missing: ops that the device cannot run, with their counts.
absl::Status MissingImpls(const Device& device, const std::map<std::string, size_t>& missing);

}  // namespace keel
