// build.h: the builder: programs (keel_graph.h), importers and passes (keel_host.h) build graphs from C types
// through these functions, Graph and Module, so that each check has one place and one message. An error
// leaves the graph unchanged, except for a node with another number of results than `out`.
#pragma once

#include <span>
#include <string_view>

#include "abi/keel_plugin.h"
#include "kernel/language/graph/graph.h"

namespace keel {

absl::StatusOr<TensorType> ParamType(std::string_view name, keel_dt code, const keel_dim* dims, int32_t ndim);
// Names may be null: the graph makes one.
absl::StatusOr<ValueId> BuildParam(Graph&, const char* name, keel_dt code, const keel_dim* dims,
                                   int32_t ndim);
// Shares a contiguous array, which must not be written any more, and copies a strided one.
absl::StatusOr<Constant> BuildConstant(const char* name, ArrayRef array);
// The size of `out` must be the node's number of results.
absl::Status BuildNode(Graph&, const keel_node_spec&, std::span<keel_value> out);
absl::Status BuildResult(Graph&, const char* name, keel_value value);
absl::Status CheckHasValue(const Graph&, keel_value value);  // NotFound: there is no such value
// attribute -> keel_attr, which borrows the value's data, and back
keel_attr ViewAttr(const AttrValue& value);
absl::StatusOr<Attrs> OwnAttrs(const char* const* names, const keel_attr* attrs, uint32_t n);  // sorted

}  // namespace keel
