// svm.cc: support vector machines of ai.onnx.ml: SVMRegressor and SVMClassifier.
#include <algorithm>

#include "plugins/onnx/ops/classes.h"
#include "plugins/onnx/ops/coupling.h"

namespace onnx_import {
namespace {

Term kernel_between(Call& c, const Term& x, const Term& vectors) {
  const std::string kind = c.s("kernel_type", "LINEAR");
  std::vector<float> p = c.floats("kernel_params");
  if (p.empty()) p.assign(3, 0);
  if (p.size() != 3)
    c.invalid(cat("kernel_params has ", p.size(), " entries; expected gamma, coef0 and degree"));
  if (kind == "RBF") {
    const Term apart = x.unsqueeze(1) - vectors;
    return ((apart * apart).sum({2}) * -static_cast<double>(p[0])).op("exp");
  }
  const Term dot = x.op("matmul", vectors, Attrs().flag("tb", true));
  if (kind == "LINEAR") return dot;
  const Term s = dot * static_cast<double>(p[0]) + static_cast<double>(p[1]);
  if (kind == "SIGMOID") return s.op("tanh");
  if (kind != "POLY") c.invalid(cat("kernel_type is '", kind, "'; expected LINEAR, POLY, RBF or SIGMOID"));
  return s.op("pow", static_cast<double>(p[2]));
}

// [n, vectors]: of each row of the operand and each support vector.
Term kernel_of(Call& c, int64_t vectors) {
  const Term x = Term(c, 0).to(KEEL_F32);
  if (x.rank() != 2) c.invalid(cat("its operand has ", x.rank(), " dims; expected [n, features]"));
  const int64_t features = static_dim(c, x.dim(1), "the number of features");
  const std::vector<float> entries = c.floats("support_vectors");
  if (vectors < 1 || features < 1 || std::ssize(entries) / features != vectors ||
      std::ssize(entries) % features)
    c.invalid(cat("support_vectors has ", entries.size(), " entries for ", vectors, " vectors of ", features,
                  " features"));
  return kernel_between(c, x, constant_of(c.e, KEEL_F32, entries).reshape({vectors, features}));
}

void svm_regressor(Call& c) {
  const std::string after = c.s("post_transform", "NONE");
  if (after != "NONE") c.unsupported(cat("post_transform '", after, "'; expected NONE"));
  const std::vector<float> weights = c.floats("coefficients"), rho = c.floats("rho");
  const int64_t vectors = c.i("n_supports", 0), n = std::ssize(weights);
  if (vectors < 1) c.unsupported("no support vectors; use LinearRegressor");
  if (n != vectors || rho.size() != 1)
    c.invalid(cat(n, " coefficients and ", rho.size(), " entries of rho for ", vectors, " support vectors"));
  Term y = kernel_of(c, vectors).op("matmul", constant_of(c.e, KEEL_F32, weights).reshape({n, 1})) +
           static_cast<double>(rho[0]);
  if (c.i("one_class", 0)) y = select(y > 0, filled(c.e, KEEL_F32, 1, y.dims()), -1.0);
  c.set(0, y.v);
}

// Each pair of classes i < j has a score, whose sign votes for i or for j. Columns of `weights`, [vectors,
// pairs], are the coefficients of a pair; the vectors of other classes have 0.
struct Pairs {
  std::vector<float> weights, for_first, for_second;  // the latter [pairs, classes]: one for the vote
  int64_t count = 0;
};

Pairs pairs_of(Call& c, const Ints& per_class, int64_t vectors) {
  const std::vector<float> given = c.floats("coefficients");
  const auto classes = std::ssize(per_class);
  if (std::ssize(given) != (classes - 1) * vectors)
    c.invalid(cat(given.size(), " coefficients for ", vectors, " support vectors of ", classes, " classes"));
  Pairs p;
  p.count = classes * (classes - 1) / 2;
  p.weights.resize(static_cast<size_t>(vectors * p.count));
  p.for_first.resize(static_cast<size_t>(p.count * classes)), p.for_second = p.for_first;
  int64_t pair = 0, start_i = 0;
  for (int64_t i = 0; i < classes; start_i += per_class[static_cast<size_t>(i++)]) {
    int64_t start_j = start_i + per_class[static_cast<size_t>(i)];
    for (int64_t j = i + 1; j < classes; start_j += per_class[static_cast<size_t>(j++)], pair++) {
      const auto fill = [&](int64_t row, int64_t from, int64_t count) {
        for (int64_t v = from; v < from + count; v++)
          p.weights[static_cast<size_t>(v * p.count + pair)] = given[static_cast<size_t>(row * vectors + v)];
      };
      fill(j - 1, start_i, per_class[static_cast<size_t>(i)]);
      fill(i, start_j, per_class[static_cast<size_t>(j)]);
      p.for_first[static_cast<size_t>(pair * classes + i)] = 1;
      p.for_second[static_cast<size_t>(pair * classes + j)] = 1;
    }
  }
  return p;
}

// Each pair's score gives its first class the probability 1 / (1 + exp(a * score + b)), not quite 0 or 1.
Term probabilities(Call& c, const Term& scores, int64_t pairs, int64_t classes) {
  const std::vector<float> a = c.floats("prob_a"), b = c.floats("prob_b");
  if (std::ssize(a) != pairs || std::ssize(b) != pairs)
    c.invalid(
        cat("prob_a has ", a.size(), " and prob_b ", b.size(), " entries for ", pairs, " pairs of classes"));
  const Term first =
      (-(scores * constant_of(c.e, KEEL_F32, a) + constant_of(c.e, KEEL_F32, b))).op("sigmoid");
  return coupled(first.clamp(1e-7, 1 - 1e-7), classes);
}

void svm_classifier(Call& c) {
  const Labels labels = class_labels(c, "classlabels_ints");
  const Ints per_class = c.ints("vectors_per_class");
  const auto classes = static_cast<int64_t>(labels.size());
  if (classes > 64) c.unsupported(cat(classes, " classes; at most 64"));
  if (std::ssize(per_class) != classes)
    c.unsupported(cat("vectors_per_class with ", per_class.size(), " entries for ", classes, " classes"));
  int64_t vectors = 0;
  for (int64_t n : per_class) {
    if (n < 0 || n > INT32_MAX) c.invalid(cat("vectors_per_class has the entry ", n));
    vectors += n;
  }
  const Pairs p = pairs_of(c, per_class, vectors);
  const std::vector<float> rho = c.floats("rho");
  if (std::ssize(rho) != p.count)
    c.invalid(cat("rho has ", rho.size(), " entries for ", p.count, " pairs of classes"));
  const auto matrix = [&](const std::vector<float>& numbers, int64_t columns) {
    return constant_of(c.e, KEEL_F32, numbers).reshape({std::ssize(numbers) / columns, columns});
  };
  const Term scores =
      kernel_of(c, vectors).op("matmul", matrix(p.weights, p.count)) + constant_of(c.e, KEEL_F32, rho);
  const Term first = (scores > 0).to(KEEL_F32);
  const Term votes = first.op("matmul", matrix(p.for_first, classes)) +
                     (1.0 - first).op("matmul", matrix(p.for_second, classes));
  give_labels(c, labels, votes);
  if (!c.floats("prob_a").empty())
    return c.set(1, transformed(c, probabilities(c, scores, p.count, classes)).v);
  c.set(1, transformed(c, classes == 2 ? concat({-scores, scores}, 1) : scores).v);
}

#define ML "ai.onnx.ml."
constexpr Rule kRules[] = {
    {ML "SVMRegressor", 1, svm_regressor,
     "coefficients kernel_params kernel_type n_supports n_targets one_class post_transform rho "
     "support_vectors"},
    {ML "SVMClassifier", 1, svm_classifier,
     "classlabels_ints classlabels_strings coefficients kernel_params kernel_type post_transform prob_a "
     "prob_b rho "
     "support_vectors vectors_per_class"},
};

}  // namespace

Rules svm_rules() { return kRules; }

}  // namespace onnx_import
