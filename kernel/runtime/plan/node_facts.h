// node_facts.h: properties of single nodes for lowering: aliases, known sizes, effects of bodies.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "kernel/language/graph/graph.h"
#include "kernel/language/opset/opset.h"

namespace keel {

// Whether the result is an alias of the operand.
bool IsAlias(const OpDef& op, std::span<const Operand> in, const Inferred& inferred);
// The result of a `dim` node, if it is known at planning.
std::optional<Dim> KnownSize(const OpDef& op, const Attrs& attrs);
// Whether a graph that the attributes refer to has effects.
bool HasEffects(const Module& module, const Attrs& attrs);
// "T=f32", for messages; the dtypes of the operands if the op has no type variables.
std::string DescribeTypes(const Inferred& inferred, std::span<const DType> in);
// The error for a needed parameter that is not fed.
absl::Status NotFed(const Graph& graph, ValueId v);

}  // namespace keel
