// node_facts.h: questions about one node that lowering asks: is it an alias, a known size, does a body have
// effects?
#pragma once

#include <optional>
#include <span>
#include <string>

#include "kernel/graph/graph.h"
#include "kernel/opset/opset.h"

namespace keel {

// The result is the operand itself, without a copy.
bool IsAlias(const OpDef& op, std::span<const uint32_t> in, const Inferred& inferred);
// The number that a `dim` node computes, where it is known without a run.
std::optional<Dim> KnownSize(const OpDef& op, const Attrs& attrs);
// Of the graphs that the attributes name.
bool HasEffects(const Module& module, const Attrs& attrs);
// "T=f32", for messages; the dtypes of the operands where the op has no type variables.
std::string DescribeTypes(const Inferred& inferred, std::span<const DType> in);
// The error for a parameter that is needed and not fed.
absl::Status NotFed(const Graph& graph, ValueId v);

}  // namespace keel
