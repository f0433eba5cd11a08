// activations.cc: see activations.h. A function is a row of kFunctions.
#include "plugins/onnx/ops/activations.h"

#include <algorithm>
#include <cctype>

namespace onnx_import {
namespace {

Term relu(const Term& x, double, double) { return x.op("relu"); }
Term tanh(const Term& x, double, double) { return x.op("tanh"); }
Term sigmoid(const Term& x, double, double) { return x.op("sigmoid"); }
Term softplus(const Term& x, double, double) { return x.op("softplus"); }
Term softsign(const Term& x, double, double) { return x / (x.op("abs") + 1); }
Term affine(const Term& x, double alpha, double beta) { return x * alpha + beta; }
Term leaky_relu(const Term& x, double alpha, double) { return select(x < 0, x * alpha, x); }
Term thresholded(const Term& x, double alpha, double) { return select(x > alpha, x, 0); }
Term scaled_tanh(const Term& x, double alpha, double beta) { return (x * beta).op("tanh") * alpha; }
Term hard_sigmoid(const Term& x, double alpha, double beta) { return (x * alpha + beta).clamp(0, 1); }
Term elu(const Term& x, double alpha, double) { return select(x < 0, (x.op("exp") - 1) * alpha, x); }

struct NamedActivation {
  const char* name;  // lower case
  Activation it;
  bool has_alpha, has_beta;
};
constexpr NamedActivation kFunctions[] = {
    {"relu", {relu, 0, 0}, false, false},
    {"tanh", {tanh, 0, 0}, false, false},
    {"sigmoid", {sigmoid, 0, 0}, false, false},
    {"softplus", {softplus, 0, 0}, false, false},
    {"softsign", {softsign, 0, 0}, false, false},
    {"affine", {affine, 1, 0}, true, true},
    {"leakyrelu", {leaky_relu, 0.01, 0}, true, false},
    {"thresholdedrelu", {thresholded, 1, 0}, true, false},
    {"scaledtanh", {scaled_tanh, 1, 1}, true, true},
    {"hardsigmoid", {hard_sigmoid, 0.2, 0.5}, true, true},
    {"elu", {elu, 1, 0}, true, false},
};

std::string lower(std::string s) {
  for (char& c : s) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return s;
}

}  // namespace

std::vector<Activation> activations_of(Call& c, const std::vector<std::string>& defaults) {
  std::vector<std::string> names = c.strings("activations");
  if (names.empty()) names = defaults;
  if (names.size() != defaults.size())
    c.invalid(cat("activations has ", names.size(), " entries; expected ", defaults.size()));
  const std::vector<float> alphas = c.floats("activation_alpha"), betas = c.floats("activation_beta");
  size_t alpha = 0, beta = 0;
  std::vector<Activation> list;
  for (const std::string& name : names) {
    const auto* f = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                 [&](const NamedActivation& g) { return g.name == lower(name); });
    if (f == std::end(kFunctions)) c.unsupported(cat("the activation '", name, "'"));
    list.push_back(f->it);
    if (f->has_alpha && alpha < alphas.size()) list.back().alpha = static_cast<double>(alphas[alpha++]);
    if (f->has_beta && beta < betas.size()) list.back().beta = static_cast<double>(betas[beta++]);
  }
  return list;
}

}  // namespace onnx_import
