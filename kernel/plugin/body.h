// body.h: the graphs that a node runs as plugins see them. Body: the graph with complete attributes, dims of
// a table of the owner's choice. BodyView: the same with numbers for dims, behind keel_host.node_body and
// node_graph.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "kernel/plugin/host.h"

namespace keel {

// Values are numbered as in keel_body: parameters, then the results of each node, and constants before who
// reads them first.
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
  std::vector<Inferred::Check> checks;  // facts that inference could not prove
};

// From the dims of the body's module to those of `dims`; absent: they are the same.
using DimMap = std::function<absl::StatusOr<Dim>(Dim)>;
absl::StatusOr<std::shared_ptr<const Body>> MakeBody(const Graph& graph, DimTable& dims, const DimMap& map);
// The body that the node calls, or null.
absl::StatusOr<std::shared_ptr<const Body>> BodyOf(const Module& module, const OpDef& op, const Attrs& attrs,
                                                   DimTable& dims, const DimMap& map);
bool MentionsSymbols(const Body& body);

absl::Status MapDims(const DimMap& map, TensorType* type);
absl::Status MapDims(const DimMap& map, Attrs* attrs);

struct BodyView {
  std::vector<keel_node> nodes;
  std::vector<keel_body_node> rows;
  std::vector<std::vector<uint32_t>> in;
  std::vector<uint32_t> results;
  uint32_t n_values = 0;
};
// Numbers for dims: of values, and in attributes.
absl::StatusOr<std::shared_ptr<const BodyView>> ViewBody(const Body& body, const DimMap& of_values,
                                                         const DimMap& of_attrs);

}  // namespace keel
