// save.h: writes the graph of a module as an ONNX model.
#pragma once
#include "plugins/onnx/export/call.h"

namespace onnx_export {

// Ops with a body that rows convert, for keel_importer.composites.
inline constexpr const char* kComposites =
    "sigmoid softplus tan asin acos atan gelu leaky_relu softmax log_softmax layer_norm batch_norm";
// Converts all nodes of the scope's graph.
void export_nodes(Scope& scope);
void save(const keel_host* host, keel_edit* edit, const keel_sink* sink);

}  // namespace onnx_export
