// activation.cc: activation functions, mostly a few elementwise ops each.
#include <cmath>

#include "plugins/onnx/import/named.h"
#include "plugins/onnx/ops/term.h"

namespace onnx_import {
namespace {

// The result: x if x > 0 (>= 0 gives the same here), else `other`.
void positive_or(Call& c, const Term& x, const Term& other) { c.done("select", {(x > 0).v, x.v, other.v}); }

void leaky_relu(Call& c) { c.done("leaky_relu", {c.in(0)}, Attrs().f("alpha", c.f("alpha", 0.01))); }

void elu(Call& c) {
  const Term x(c, 0), alpha = x.n(c.f("alpha", 1));
  positive_or(c, x, alpha * (x.op("exp") - 1));
}

void celu(Call& c) {
  const Term x(c, 0), alpha = x.n(c.f("alpha", 1));
  positive_or(c, x, alpha * ((x / alpha).op("exp") - 1));
}

void selu(Call& c) {
  const bool old = c.opset < 6;
  const Term x(c, 0), alpha = x.n(c.f("alpha", old ? 1.6732 : 1.67326319217681884765625));
  const double gamma = c.f("gamma", old ? 1.0507 : 1.05070102214813232421875);
  const Term low = alpha * (x.op("exp") - 1), y = select(x > 0, x, low);
  c.done("mul", {x.n(gamma).v, y.v});
}

Term hard_sigmoid_of(const Term& x, double alpha, double beta) { return (x * alpha + beta).clamp(0, 1); }
void hard_sigmoid(Call& c) { c.set(0, hard_sigmoid_of(Term(c, 0), c.f("alpha", 0.2), c.f("beta", 0.5)).v); }
void hard_swish(Call& c) {
  const Term x(c, 0);
  c.done("mul", {x.v, hard_sigmoid_of(x, 1.0 / 6, 0.5).v});
}

void prelu(Call& c) {
  const Term x(c, 0);
  c.done("select", {(x < 0).v, (x * Term(c, 1)).v, x.v});
}

void softsign(Call& c) {
  const Term x(c, 0), one = x.n(1);
  c.done("div", {x.v, (one + x.op("abs")).v});
}

void swish(Call& c) {
  const Term x(c, 0);
  const double alpha = c.f("alpha", 1);
  if (alpha == 1) return c.done("silu", {x.v});
  c.done("mul", {x.v, (x * alpha).op("sigmoid").v});
}

void swiglu(Call& c) {
  const Term x(c, 0);
  const double alpha = c.f("alpha", 1);
  const Term gate = alpha == 1 ? x.op("silu") : x * (x * alpha).op("sigmoid");
  c.done("mul", {gate.v, c.in(1)});
}

void mish(Call& c) {
  const Term x(c, 0);
  c.done("mul", {x.v, x.op("softplus").op("tanh").v});
}

void thresholded_relu(Call& c) {
  const Term x(c, 0);
  c.done("select", {(x > c.f("alpha", 1)).v, x.v, x.n(0).v});
}

// Of integers in f64, as bias and lambd are floats and the negative lambd is no unsigned number.
void shrink(Call& c) {
  const keel_dt dtype = c.dtype(0);
  const double bias = c.f("bias", 0), lambda = c.f("lambd", 0.5);
  const Term x = is_float(dtype) ? Term(c, 0) : Term(c, 0).to(KEEL_F64);
  c.set(0, select(x < -lambda, x + bias, select(x > lambda, x - bias, 0)).to(dtype).v);
}

void gelu(Call& c) {
  const std::string kind = c.s("approximate", "none");
  if (kind != "none" && kind != "tanh") c.invalid(cat("approximate is '", kind, "'; expected none or tanh"));
  c.done("gelu", {c.in(0)}, Attrs().flag("tanh", kind == "tanh"));
}

template <OpName op>
void along_axis(Call& c) {
  c.done(op.text, {c.in(0)}, Attrs().i("axis", c.axis(c.i("axis", -1), c.rank(0))));
}

// Before opset 13 the operand is flattened to a matrix: dims before axis by the other dims.
template <OpName op>
void along_rows(Call& c) {
  const int64_t rank = c.rank(0), axis = c.axis(c.i("axis", 1), rank);
  if (axis == rank - 1) return c.done(op.text, {c.in(0)}, Attrs().i("axis", axis));
  const Dims dims = c.dims(0);
  const auto at = static_cast<size_t>(axis);
  const keel_value rows = c.e.reshape(c.in(0), {c.e.product(dims, 0, at), c.e.product(dims, at)});
  c.done("reshape", {c.e.op(op.text, {rows}, Attrs().i("axis", 1))}, Attrs().dims("to", dims));
}

// An axis that may be empty gets an element more, which no other loses to: arg_max needs one.
keel_value hard_max_of(Edit& e, keel_value x, int64_t axis) {
  const Dims dims = e.dims(x);
  const keel_dim depth = dims[static_cast<size_t>(axis)];
  const keel_dt dtype = e.dtype(x);
  if (!e.at_least(depth, 1)) {
    Dims hi(dims.size(), 0);
    hi[static_cast<size_t>(axis)] = 1;
    const keel_value lowest = e.scalar(dtype, -INFINITY);
    x = e.op("pad", {x, lowest}, Attrs().dims("lo", Dims(dims.size(), 0)).dims("hi", hi));
  }
  const keel_value index = e.op("arg_max", {x}, Attrs().i("axis", axis));
  return e.op("one_hot", {index}, Attrs().dim("depth", depth).i("axis", axis).dtype("dtype", dtype));
}
void hard_max(Call& c) { c.set(0, hard_max_of(c.e, c.in(0), c.axis(c.i("axis", -1), c.rank(0)))); }
void hard_max_rows(Call& c) {
  const Dims dims = c.dims(0);
  const auto at = static_cast<size_t>(c.axis(c.i("axis", 1), c.rank(0)));
  const keel_value rows = c.e.reshape(c.in(0), {c.e.product(dims, 0, at), c.e.product(dims, at)});
  c.done("reshape", {hard_max_of(c.e, rows, 1)}, Attrs().dims("to", dims));
}

constexpr Rule kRules[] = {
    {"Relu", 1, same<"relu">},
    {"Sigmoid", 1, same<"sigmoid">},
    {"Tanh", 1, same<"tanh">},
    {"Softplus", 1, same<"softplus">},
    {"LeakyRelu", 1, leaky_relu, "alpha"},
    {"Elu", 1, elu, "alpha"},
    {"Celu", 12, celu, "alpha"},
    {"Selu", 1, selu, "alpha gamma"},
    {"HardSigmoid", 1, hard_sigmoid, "alpha beta"},
    {"HardSwish", 14, hard_swish},
    {"PRelu", 7, prelu},
    {"Softsign", 1, softsign},
    {"Swish", 24, swish, "alpha"},
    {"SwiGLU", 28, swiglu, "alpha"},
    {"Mish", 18, mish},
    {"ThresholdedRelu", 10, thresholded_relu, "alpha"},
    {"Shrink", 9, shrink, "bias lambd"},
    {"Gelu", 20, gelu, "approximate"},
    {"Softmax", 13, along_axis<"softmax">, "axis"},
    {"Softmax", 1, along_rows<"softmax">, "axis"},
    {"LogSoftmax", 13, along_axis<"log_softmax">, "axis"},
    {"LogSoftmax", 1, along_rows<"log_softmax">, "axis"},
    {"Hardmax", 13, hard_max, "axis"},
    {"Hardmax", 1, hard_max_rows, "axis"},
};

}  // namespace

Rules activation_rules() { return kRules; }

}  // namespace onnx_import
