// coupling.h: probabilities of classes from probabilities of pairs of classes, for SVMClassifier.
#pragma once
#include "plugins/onnx/ops/term.h"

namespace onnx_import {

// pairs: [n, classes * (classes - 1) / 2], the probability of i against j for each i < j in order. Returns
// [n, classes].
Term coupled(const Term& pairs, int64_t classes);

}  // namespace onnx_import
