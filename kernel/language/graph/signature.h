// signature.h: signatures of entries as text for users.
#pragma once

#include <string>
#include <string_view>

#include "kernel/language/graph/graph.h"

namespace keel {

// "float32 Tensor, shape=(2, b)", with numpy's dtype names.
std::string PrintSpec(const TensorType& type, const DimTable& dims);
// The signature of one graph: `head` ("f(x, n=3)"; "": name and parameters of the graph), Args, Returns,
// Captures (its variables).
std::string PrintSignature(const Graph& graph, std::string head);
// One block per entry, separated by empty lines.
std::string PrintSignatures(const Module& module);
// The metadata key for `head` of an entry that was traced with static arguments.
std::string SignatureKey(std::string_view entry);

}  // namespace keel
