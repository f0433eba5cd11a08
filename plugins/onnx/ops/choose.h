// choose.h: the places of chosen elements, whose number only a run knows.
#pragma once
#include "plugins/onnx/ops/term.h"

namespace onnx_import {

Term flattened(const Term& x);
// The places of the true elements of a bool[n]: i64[m]. Not in a body.
Term true_places(const Term& mask);

}  // namespace onnx_import
