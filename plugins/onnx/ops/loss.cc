// loss.cc: NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. Classes are along dim 1.
#include "plugins/onnx/import/named.h"

namespace onnx_import {
namespace {

struct Weighted {
  keel_value loss, weight;  // both with the target's dims
};

// The negative score at the target's class times the class's weight; zero if ignored.
Weighted weighted(Call& c, keel_value scores) {
  Edit& e = c.e;
  const keel_dt dtype = e.dtype(scores);
  Dims column = c.dims(1);
  if (column.empty() || e.dims(scores).size() != column.size() + 1)
    c.invalid("scores must have one dim more than the target");
  keel_value target = c.in(1), counted = KEEL_NO_VALUE;
  if (c.has_attribute("ignore_index")) {
    const keel_value ignored = e.scalar(e.dtype(target), static_cast<double>(c.i("ignore_index", 0)));
    counted = e.op("not_equal", {target, ignored});
    target = e.op("select", {counted, target, e.scalar(e.dtype(target), 0)});
  }
  column.insert(column.begin() + 1, 1);
  const keel_value picked =
      e.op("gather_elements", {scores, e.reshape(target, column)}, Attrs().i("axis", 1));
  Weighted w;
  w.weight = c.has(2) ? e.op("gather", {c.in(2), target}, Attrs().i("axis", 0))
                      : e.op("fill", {e.scalar(dtype, 1)}, Attrs().dims("dims", c.dims(1)));
  if (counted != KEEL_NO_VALUE) w.weight = e.op("select", {counted, w.weight, e.scalar(dtype, 0)});
  w.loss = e.op("mul", {e.op("neg", {e.reshape(picked, c.dims(1))}), w.weight});
  if (counted != KEEL_NO_VALUE) w.loss = e.op("select", {counted, w.loss, e.scalar(dtype, 0)});
  return w;
}

void reduced(Call& c, const Weighted& w) {
  const std::string reduction = c.s("reduction", "mean");
  if (reduction == "none") return c.set(0, w.loss);
  if (reduction == "sum") return c.done("reduce_sum", {w.loss});
  if (reduction != "mean") c.invalid(cat("reduction is '", reduction, "'; expected none, sum or mean"));
  c.done("div", {c.e.op("reduce_sum", {w.loss}), c.e.op("reduce_sum", {w.weight})});
}

void likelihood(Call& c) { reduced(c, weighted(c, c.in(0))); }

void cross_entropy(Call& c) {
  if (c.rank(0) < 2) c.invalid("scores must have at least 2 dims");
  const keel_value logs = c.e.op("log_softmax", {c.in(0)}, Attrs().i("axis", 1));
  reduced(c, weighted(c, logs));
  if (c.wants(1)) c.set(1, logs);
}

constexpr Rule kRules[] = {
    {"NegativeLogLikelihoodLoss", 12, likelihood, "ignore_index reduction"},
    {"SoftmaxCrossEntropyLoss", 12, cross_entropy, "ignore_index reduction"},
};

}  // namespace

Rules loss_rules() { return kRules; }

}  // namespace onnx_import
