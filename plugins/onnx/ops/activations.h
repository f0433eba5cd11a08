// activations.h: the activation functions that recurrent operators name in attributes.
#pragma once
#include "plugins/onnx/ops/term.h"

namespace onnx_import {

struct Activation {
  Term (*apply)(const Term& x, double alpha, double beta);
  double alpha, beta;
};

// `count` functions from the attributes activations, activation_alpha and activation_beta; `defaults` if the
// first is missing. alpha and beta are consumed in order by the functions that have them.
std::vector<Activation> activations_of(Call& c, const std::vector<std::string>& defaults);

}  // namespace onnx_import
