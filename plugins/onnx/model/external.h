// external.h: tensor data in a file next to the model.
#pragma once
#include "plugins/onnx/model/data.h"
#include "plugins/onnx/model/model.h"

namespace onnx_import {

// Maps the file of t, which must be in the model's folder, and points d at its bytes.
void open_external(const Tensor& t, const keel_source& source, uint64_t wanted, Data& d);

}  // namespace onnx_import
