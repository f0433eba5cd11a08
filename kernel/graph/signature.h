// signature.h: what goes into an entry and what comes out, as text for people.
#pragma once

#include <string>
#include <string_view>

#include "kernel/graph/graph.h"

namespace keel {

// "float32 Tensor, shape=(2, b)": dtypes as NumPy calls them.
std::string PrintSpec(const TensorType& type, const DimTable& dims);
// The block of one graph: `head` ("f(x, n=3)"; "": the graph's name and parameters), Args, Returns, Captures
// (its variables).
std::string PrintSignature(const Graph& graph, std::string head);
// One block for each entry, with an empty line between.
std::string PrintSignatures(const Module& module);
// The metadata key for the head of an entry that was traced with static arguments.
std::string SignatureKey(std::string_view entry);

}  // namespace keel
