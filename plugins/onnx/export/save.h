// save.h: writes the graph of a module as an ONNX model.
#pragma once
#include "plugins/onnx/export/call.h"

namespace onnx_export {

// The ops of composite.cc, for keel_importer.composites.
const char* composites();
// Whether save writes a node of one of them itself.
bool keeps(const keel_host* host, const keel_node* node);
// Converts all nodes of the scope's graph.
void export_nodes(Scope& scope);
void save(const keel_host* host, keel_edit* edit, const keel_sink* sink);

}  // namespace onnx_export
