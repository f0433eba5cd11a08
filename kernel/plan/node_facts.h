// node_facts.h: properties of one node for lowering: aliases, known sizes, effects of bodies.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "kernel/graph/graph.h"
#include "kernel/opset/opset.h"

namespace keel {

// Whether the result is the operand, without a copy.
bool IsAlias(const OpDef& op, std::span<const uint32_t> in, const Inferred& inferred);
// The result of a `dim` node, if it is known without a run.
std::optional<Dim> KnownSize(const OpDef& op, const Attrs& attrs);
// Whether a graph named by the attributes has effects.
bool HasEffects(const Module& module, const Attrs& attrs);
// "T=f32", for messages; the dtypes of the operands where the op has no type variables.
std::string DescribeTypes(const Inferred& inferred, std::span<const DType> in);
// The error for a needed parameter that is not fed.
absl::Status NotFed(const Graph& graph, ValueId v);

}  // namespace keel
