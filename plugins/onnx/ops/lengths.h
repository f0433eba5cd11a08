// lengths.h: the lengths of the sequences of a batch, as recurrent cells and ReverseSequence get them.
#pragma once
#include "plugins/onnx/ops/term.h"

namespace onnx_import {

// The operand as i64[batch], whose elements are from 0 to `steps`. Others are an error, as in ONNX Runtime:
// of the import if it knows both, otherwise of the run.
Term checked_lengths(Call& c, size_t operand, keel_dt dtype, keel_dim batch, keel_dim steps);

}  // namespace onnx_import
