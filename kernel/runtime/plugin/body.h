// body.h: graphs called by a node, for plugins: the graph with complete attributes; its dims are of a table
// chosen by the owner. ViewBody replaces them by numbers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "kernel/language/graph/graph.h"
#include "kernel/runtime/plugin/node.h"

namespace keel {

// Values are numbered as in keel_body: parameters, then the results of each node; a constant precedes its
// first user.
struct Body {
  struct Node {
    const OpDef* op;
    std::string name;
    std::vector<uint32_t> in, out;
    Attrs attrs;
    std::shared_ptr<const Body> body;  // of a call
  };
  uint32_t n_params = 0;
  std::vector<TensorType> values;
  std::vector<Node> nodes;
  std::vector<uint32_t> results;
  std::map<uint32_t, Constant> constants;
  std::vector<Inferred::Check> checks;  // conditions that depend on symbols
};

// Maps dims of the body's module to dims of the table `dims`; empty: identity.
using DimMap = std::function<absl::StatusOr<Dim>(Dim)>;
absl::StatusOr<std::shared_ptr<const Body>> CreateBody(const Graph& graph, DimTable& dims, const DimMap& map);
// The body that the node calls, or null.
absl::StatusOr<std::shared_ptr<const Body>> BodyOf(const Module& module, const OpDef& op, const Attrs& attrs,
                                                   DimTable& dims, const DimMap& map);
bool MentionsSymbols(const Body& body);
bool MentionsSymbols(const Dims& dims);
bool MentionsSymbols(const Attrs& attrs);

absl::Status MapDims(const DimMap& map, TensorType* type);
absl::Status MapDims(const DimMap& map, Attrs* attrs);

// Maps dims of values, and in attributes, to numbers.
absl::StatusOr<std::shared_ptr<const BodyView>> ViewBody(const Body& body, const DimMap& of_values,
                                                         const DimMap& of_attrs);

}  // namespace keel
