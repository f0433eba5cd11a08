// slice.h: one axis of an ONNX Slice with bounds as Keel requires: 0 <= start <= stop <= size, step > 0.
#pragma once
#include "plugins/onnx/import/edit.h"

namespace onnx_import {

struct Cut {
  keel_dim start, stop;
  int64_t step;   // positive
  bool reversed;  // the axis is reversed first
};

// ONNX bounds may be negative (from the end) and are clamped; step may be negative.
Cut cut(Edit& e, keel_dim size, keel_dim start, keel_dim end, int64_t step);

}  // namespace onnx_import
