// training.cc: the optimisers of ai.onnx.preview.training: Adagrad, Adam, Momentum. Operands are the rate,
// the number of updates so far, then the tensors, their gradients and their states; the results are the new
// ones.
#include "plugins/onnx/ops/term.h"

namespace onnx_import {
namespace {

struct Update {
  Term rate, count;
  Term x, gradient;  // with the regularisation added
  std::vector<Term> states;
};
using Step = std::vector<Term> (*)(Call&, const Update&);

// Operands 2 ... are `kinds` lists of equal length, results all but the list of gradients.
void each_tensor(Call& c, size_t kinds, Step step) {
  if (c.n_in() < 2 + kinds || (c.n_in() - 2) % kinds != 0)
    c.invalid(cat("it has ", c.n_in(), " operands; expected the rate, the count and ", kinds, " per tensor"));
  const size_t n = (c.n_in() - 2) / kinds;
  for (size_t k = 0; k < n; k++) {
    const Term x(c, 2 + k);
    Update u = {Term(c, 0).reshape({}).to(x.dtype()),
                Term(c, 1).reshape({}),
                x,
                Term(c, 2 + n + k) + x * c.f("norm_coefficient", 0),
                {}};
    for (size_t s = 2; s < kinds; s++) u.states.emplace_back(c, 2 + s * n + k);
    const std::vector<Term> next = step(c, u);
    for (size_t s = 0; s < next.size(); s++) c.set(s * n + k, next[s].v);
  }
}

std::vector<Term> adagrad_step(Call& c, const Update& u) {
  const Term rate = u.rate / (u.count.to(u.x.dtype()) * c.f("decay_factor", 0) + 1);
  const Term sum = u.states[0] + u.gradient * u.gradient;
  return {u.x - rate * u.gradient / (sum.op("sqrt") + c.f("epsilon", 0)), sum};
}

std::vector<Term> adam_step(Call& c, const Update& u) {
  const double alpha = c.f("alpha", 0.9f), beta = c.f("beta", 0.999f);
  const Term mean = u.states[0] * alpha + u.gradient * (1 - alpha);
  const Term square = u.states[1] * beta + u.gradient * u.gradient * (1 - beta);
  const Term count = u.count.to(KEEL_F64);
  const auto rest = [&](double base) { return 1.0 - count.n(base).op("pow", count); };
  const Term corrected = u.rate.to(KEEL_F64) * rest(beta).op("sqrt") / rest(alpha);
  const Term rate = select(u.count > 0, corrected.to(u.x.dtype()), u.rate);
  const Term x = u.x - rate * mean / (square.op("sqrt") + c.f("epsilon", 0));
  return {x * (1 - c.f("norm_coefficient_post", 0)), mean, square};
}

std::vector<Term> momentum_step(Call& c, const Update& u) {
  const std::string mode = c.s("mode", "");
  if (mode != "standard" && mode != "nesterov")
    c.invalid(cat("mode is '", mode, "'; expected standard or nesterov"));
  const double alpha = c.f("alpha", 0);
  const Term weight = select(u.count > 0, u.x.n(c.f("beta", 0)), u.x.n(1));
  const Term v = u.states[0] * alpha + weight * u.gradient;
  return {u.x - u.rate * (mode == "standard" ? v : u.gradient + v * alpha), v};
}

void adagrad(Call& c) { each_tensor(c, 3, adagrad_step); }
void adam(Call& c) { each_tensor(c, 4, adam_step); }
void momentum(Call& c) { each_tensor(c, 3, momentum_step); }

#define TRAINING "ai.onnx.preview.training."
constexpr Rule kRules[] = {
    {TRAINING "Adagrad", 1, adagrad, "decay_factor epsilon norm_coefficient"},
    {TRAINING "Adam", 1, adam, "alpha beta epsilon norm_coefficient norm_coefficient_post"},
    {TRAINING "Momentum", 1, momentum, "alpha beta mode norm_coefficient"},
};

}  // namespace

Rules training_rules() { return kRules; }

}  // namespace onnx_import
