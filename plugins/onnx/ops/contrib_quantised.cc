// contrib_quantised.cc: operators on quantised operands that ONNX Runtime's quantiser writes beside
// QLinearConv, domain com.microsoft. Each dequantises, computes in f32 and quantises; the pass `quantised`
// and the devices fuse that again.
#include "plugins/onnx/ops/quantize.h"

namespace onnx_import {
namespace {

// Operand x, whose scale and zero point follow it, as f32.
Term floats(Call& c, size_t x) {
  const Term wide = Term(c, x).to(KEEL_F32);
  const Term centred = c.has(x + 2) ? wide - spread(c, x + 2).to(KEEL_F32) : wide;
  return centred * spread(c, x + 1);
}

// Quantises the result by the scale that is operand `scale` and the zero point after it.
void give(Call& c, const Term& y, size_t scale) { requantised(c, y / spread(c, scale), scale + 1, 0); }

template <const char* op>
void binary(Call& c) {
  give(c, floats(c, 0).op(op, floats(c, 3)), 6);
}
constexpr char kAdd[] = "add", kMul[] = "mul";

void sigmoid(Call& c) { give(c, floats(c, 0).op("sigmoid"), 3); }

void leaky_relu(Call& c) {
  const Attrs alpha = Attrs().f("alpha", c.f("alpha", 0.01F));
  give(c, floats(c, 0).op("leaky_relu", alpha), 3);
}

void softmax(Call& c) {
  const Term x = floats(c, 0);
  const auto rank = static_cast<int64_t>(x.rank());
  const int64_t axis = c.axis(c.i("axis", -1), rank);
  if (c.i("opset", 13) >= 13 || axis == rank - 1) return give(c, x.op("softmax", Attrs().i("axis", axis)), 3);
  Dims matrix = {1, 1};  // before opset 13 the operand is a matrix
  for (int64_t d = 0; d < rank; d++)
    matrix[d < axis ? 0 : 1] = c.e.mul(matrix[d < axis ? 0 : 1], x.dim(static_cast<size_t>(d)));
  give(c, x.reshape(matrix).op("softmax").reshape(x.dims()), 3);
}

void global_average_pool(Call& c) {
  const Term x = floats(c, 0);
  if (x.rank() < 3) c.invalid(cat("its operand has ", x.rank(), " dims; expected images"));
  const auto rank = static_cast<int64_t>(x.rank());
  const bool last = c.i("channels_last", 0) != 0;
  give(c, x.reduced("reduce_mean", last ? counting(1, rank - 1) : counting(2, rank), true), 3);
}

void concat_quantised(Call& c) {
  if (c.n_in() < 5 || c.n_in() % 3 != 2)
    c.invalid(
        cat("it has ", c.n_in(), " operands; expected a scale, a zero point and three for each operand"));
  std::vector<Term> parts;
  for (size_t x = 2; x < c.n_in(); x += 3) parts.push_back(floats(c, x));
  const int64_t axis = c.axis(c.required("axis"), static_cast<int64_t>(parts[0].rank()));
  give(c, concat(parts, axis), 0);
}

// alpha * a * b + c, quantised if there is a scale for it.
void gemm(Call& c) {
  expect_matrices(c, 0, 3);
  if (c.rank(0) != 2 || c.rank(3) != 2) c.invalid("its operands must be matrices");
  const auto operand = [&](size_t x, const char* transposed) {
    const Term t(c, x);
    return c.i(transposed, 0) ? t.transpose({1, 0}) : t;
  };
  Term sum = integer_product(operand(0, "transA"), operand(3, "transB"), zero_point(c, 2), zero_point(c, 5));
  if (c.has(6)) sum = sum + Term(c, 6);
  const Term y = sum.to(KEEL_F32) * (spread(c, 1) * spread(c, 4) * c.f("alpha", 1));
  if (!c.has(7)) return c.set(0, y.v);
  give(c, y, 7);
}

constexpr Rule kRules[] = {
    {"com.microsoft.QLinearAdd", 1, binary<kAdd>},
    {"com.microsoft.QLinearMul", 1, binary<kMul>},
    {"com.microsoft.QLinearSigmoid", 1, sigmoid},
    {"com.microsoft.QLinearLeakyRelu", 1, leaky_relu, "alpha"},
    {"com.microsoft.QLinearSoftmax", 1, softmax, "axis opset"},
    {"com.microsoft.QLinearGlobalAveragePool", 1, global_average_pool, "channels_last"},
    {"com.microsoft.QLinearConcat", 1, concat_quantised, "axis"},
    {"com.microsoft.QGemm", 1, gemm, "alpha transA transB"},
};

}  // namespace

Rules contrib_quantised_rules() { return kRules; }

}  // namespace onnx_import
