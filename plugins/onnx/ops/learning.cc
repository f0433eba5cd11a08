// learning.cc: operators of ai.onnx.ml on numbers: Binarizer, ArrayFeatureExtractor, Scaler, Normalizer,
// Imputer, LinearRegressor, LinearClassifier.
#include <cmath>
#include <cstring>

#include "plugins/onnx/ops/classes.h"

namespace onnx_import {
namespace {

// A list of the node has one number per feature (the last dim) or, where `one` says so, one for all.
void expect_features(Call& c, const char* what, size_t n, bool one = true) {
  const Dims d = c.dims(0);
  const auto count = static_cast<int64_t>(n);
  if (d.empty()) c.invalid("its operand has no dims; expected features");
  if ((one && n == 1) || KEEL_DIM_IS_HANDLE(d.back()) || d.back() == count) return;
  c.invalid(cat(what, " has ", count, " values, but its operand has ", d.back(), " features"));
}

void binarizer(Call& c) {
  const Term x(c, 0);
  c.set(0, (x > c.f("threshold", 0)).to(x.dtype()).v);
}

void feature_extractor(Call& c) {
  const Term x(c, 0), index = Term(c, 1).to(KEEL_I64).reshape({-1});
  if (x.rank() == 0) c.invalid("its operand has no dims");
  const Term y = x.gather(index, static_cast<int64_t>(x.rank()) - 1);
  c.set(0, x.rank() == 1 ? y.unsqueeze(0).v : y.v);
}

// (x - offset) * scale, per feature.
void scaler(Call& c) {
  const Term x = Term(c, 0).to(KEEL_F32);
  const std::vector<float> offset = c.floats("offset"), scale = c.floats("scale");
  Term y = x;
  if (!offset.empty()) expect_features(c, "offset", offset.size());
  if (!scale.empty()) expect_features(c, "scale", scale.size());
  if (!offset.empty()) y = y - constant_of(c.e, KEEL_F32, offset);
  if (!scale.empty()) y = y * constant_of(c.e, KEEL_F32, scale);
  c.set(0, y.v);
}

void normalizer(Call& c) {
  const Term x = Term(c, 0).to(KEEL_F32);
  if (x.rank() == 0) c.invalid("its operand has no dims");
  const Ints last = {static_cast<int64_t>(x.rank()) - 1};
  const std::string norm = c.s("norm", "MAX");
  if (norm != "MAX" && norm != "L1" && norm != "L2")
    c.invalid(cat("norm is '", norm, "'; expected MAX, L1 or L2"));
  const Term size = norm == "MAX"  ? x.reduced("reduce_max", last, true)
                    : norm == "L1" ? x.op("abs").sum(last, true)
                                   : (x * x).sum(last, true).op("sqrt");
  c.set(0, select(size == 0, x, x / size).v);
}

void imputer(Call& c) {
  const Term x(c, 0);
  const bool floats = is_float(x.dtype());
  const char* from = floats ? "imputed_value_floats" : "imputed_value_int64s";
  if (!c.has_attribute(from)) c.invalid(cat("attribute ", from, " is missing"));
  const Term values = floats ? constant_of(c.e, x.dtype(), c.floats(from)) : constant_of(c.e, c.ints(from));
  expect_features(c, from, floats ? c.floats(from).size() : c.ints(from).size());
  const double replaced =
      floats ? c.f("replaced_value_float", 0) : static_cast<double>(c.i("replaced_value_int64", 0));
  const Term wrong = std::isnan(replaced) ? x.op("is_nan") : x == replaced;
  c.set(0, select(wrong, values, x).v);
}

void linear_regressor(Call& c) {
  const std::string after = c.s("post_transform", "NONE");
  if (after != "NONE") c.unsupported(cat("post_transform '", after, "'; expected NONE"));
  const std::vector<float> weights = c.floats("coefficients"), bias = c.floats("intercepts");
  const int64_t targets = c.i("targets", 1), n = static_cast<int64_t>(weights.size());
  if (targets < 1 || n % targets != 0) c.invalid(cat(n, " coefficients for ", targets, " targets"));
  expect_features(c, "a row of coefficients", static_cast<size_t>(n / targets), false);
  const Term w = constant_of(c.e, KEEL_F32, weights).reshape({targets, n / targets});
  Term y = Term(c, 0).to(KEEL_F32).op("matmul", w, Attrs().flag("tb", true));
  if (!bias.empty()) y = y + constant_of(c.e, KEEL_F32, bias);
  c.set(0, y.v);
}

// Scores of all classes; one row of coefficients for two classes is the score of the second.
void linear_classifier(Call& c) {
  const Labels labels = class_labels(c, "classlabels_ints");
  const std::vector<float> weights = c.floats("coefficients"), bias = c.floats("intercepts");
  const auto classes = static_cast<int64_t>(labels.size()), n = static_cast<int64_t>(weights.size());
  const Dims d = c.dims(0);
  if (d.size() != 2 || KEEL_DIM_IS_HANDLE(d[1]))
    c.unsupported("an operand other than [n, features] with known features");
  const int64_t rows = d[1] > 0 && n == d[1] && classes == 2 ? 1 : classes;
  if (n != rows * d[1]) c.invalid(cat(n, " coefficients for ", d[1], " features and ", classes, " classes"));
  if (!bias.empty() && std::ssize(bias) != rows) c.invalid(cat(bias.size(), " intercepts; expected ", rows));
  Term y = Term(c, 0).to(KEEL_F32).op("matmul", constant_of(c.e, KEEL_F32, weights).reshape({rows, d[1]}),
                                      Attrs().flag("tb", true));
  if (!bias.empty()) y = y + constant_of(c.e, KEEL_F32, bias);
  const Term both = rows == 1 ? concat({-y, y}, 1) : y;
  give_labels(c, labels, both);
  // As ONNX Runtime; onnx.reference gives {-y, y} without a transform, too.
  const bool as_probability = rows == 1 && transform_of(c) == "NONE";
  c.set(1, as_probability ? concat({1 - y, y}, 1).v : transformed(c, both).v);
}

#define ML "ai.onnx.ml."
constexpr Rule kRules[] = {
    {ML "Binarizer", 1, binarizer, "threshold"},
    {ML "ArrayFeatureExtractor", 1, feature_extractor, "", 0, true},
    {ML "Scaler", 1, scaler, "offset scale"},
    {ML "Normalizer", 1, normalizer, "norm"},
    {ML "Imputer", 1, imputer,
     "imputed_value_floats imputed_value_int64s replaced_value_float replaced_value_int64"},
    {ML "LinearClassifier", 1, linear_classifier,
     "classlabels_ints classlabels_strings coefficients intercepts multi_class post_transform"},
    {ML "LinearRegressor", 1, linear_regressor, "coefficients intercepts post_transform targets"},
};

}  // namespace

Rules learning_rules() { return kRules; }

}  // namespace onnx_import
