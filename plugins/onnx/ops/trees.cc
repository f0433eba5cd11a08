// trees.cc: reading forests, and TreeEnsemble of ai.onnx.ml 5.
#include "plugins/onnx/ops/trees.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace onnx_import {

void expect_count(Call& c, const char* name, size_t got, size_t want) {
  if (got != want) c.invalid(cat(name, " has ", got, " entries; expected ", want));
}
void expect_below(Call& c, const char* name, int64_t i, size_t end) {
  if (i < 0 || static_cast<uint64_t>(i) >= end)
    c.invalid(cat(name, " contains ", i, ", which is not in [0, ", end, ")"));
}

size_t features_of(Call& c) {
  const Dims d = c.dims(0);
  if (d.size() != 2) c.invalid(cat("its operand has ", d.size(), " dims; expected [n, features]"));
  return KEEL_DIM_IS_HANDLE(d[1]) || d[1] > INT32_MAX ? INT32_MAX : static_cast<size_t>(d[1]);
}

std::vector<double> tensor_of(Call& c, const char* name) {
  const Attribute* a = c.attribute(name);
  if (!a || !a->tensor) return {};
  Value value;
  value.tensor = a->tensor.get();
  const Data* data = c.e.data(value);
  std::vector<double> numbers(data ? static_cast<size_t>(data->count()) : 0);
  for (size_t i = 0; i < numbers.size(); i++)
    if (!number_at(*data, static_cast<int64_t>(i), &numbers[i]))
      c.invalid(cat(name, " is ", dtype_name(data->dtype), "; expected numbers"));
  return numbers;
}

namespace {

constexpr int64_t kIsMember = 6;  // becomes a chain of comparisons with the members

Ints branches(Call& c, const char* name, const char* leaf_name, size_t nodes, size_t leaves) {
  Ints to = c.ints(name);
  const Ints leaf = c.ints(leaf_name);
  expect_count(c, name, to.size(), nodes);
  expect_count(c, leaf_name, leaf.size(), nodes);
  for (size_t i = 0; i < nodes; i++) {
    expect_below(c, name, to[i], leaf[i] ? leaves : nodes);
    if (leaf[i]) to[i] = -1 - to[i];
  }
  return to;
}

// Replaces the nodes of mode 6, whose sets of members are separated by NaN.
void write_out_members(Call& c, const std::vector<double>& modes, Splits* nodes) {
  const std::vector<double> members = tensor_of(c, "membership_values");
  auto at = members.begin();
  for (size_t i = 0; i < modes.size(); i++) {
    if (modes[i] != kIsMember) continue;
    const auto end = std::find_if(at, members.end(), [](double m) { return std::isnan(m); });
    if (end == members.end()) c.invalid("membership_values has fewer sets than there are nodes of mode 6");
    (*nodes)[i].at = at == end ? NAN : *at++;
    for (size_t last = i; at != end; last = nodes->size() - 1) {
      Split next = (*nodes)[last];
      next.at = *at++;
      (*nodes)[last].no = static_cast<int64_t>(nodes->size());
      nodes->push_back(next);
    }
    ++at;
  }
  if (at != members.end()) c.invalid("membership_values has more sets than there are nodes of mode 6");
}

Splits read_splits(Call& c, size_t leaves) {
  const std::vector<double> at = tensor_of(c, "nodes_splits"), modes = tensor_of(c, "nodes_modes");
  const size_t n = at.size();
  const Ints feature = c.ints("nodes_featureids"), nan = c.ints("nodes_missing_value_tracks_true");
  const Ints yes = branches(c, "nodes_truenodeids", "nodes_trueleafs", n, leaves);
  const Ints no = branches(c, "nodes_falsenodeids", "nodes_falseleafs", n, leaves);
  expect_count(c, "nodes_modes", modes.size(), n);
  expect_count(c, "nodes_featureids", feature.size(), n);
  if (!nan.empty()) expect_count(c, "nodes_missing_value_tracks_true", nan.size(), n);
  const size_t width = features_of(c);
  Splits nodes;
  for (size_t i = 0; i < n; i++) {
    const auto mode = static_cast<int64_t>(modes[i]);
    expect_below(c, "nodes_modes", mode, kIsMember + 1);
    expect_below(c, "nodes_featureids", feature[i], width);
    const int64_t true_for = mode == kIsMember ? kEqual : kTrueFor[mode];
    nodes.push_back({feature[i], true_for | (!nan.empty() && nan[i] ? kNan : 0), yes[i], no[i], at[i]});
  }
  write_out_members(c, modes, &nodes);
  return nodes;
}

// A target that no leaf has is the limit, as in onnx.reference.
double limit_of(keel_dt dtype) {
  if (dtype == KEEL_F64) return std::numeric_limits<double>::max();
  return dtype == KEEL_F16 ? 65504 : std::numeric_limits<float>::max();
}

Term transformed_by_number(Call& c, const Term& y) {
  const int64_t after = c.i("post_transform", 0);
  if (after == 0) return y;
  if (after == 1) return y.op("softmax");
  if (after == 2) return y.op("sigmoid");
  c.unsupported(cat("post_transform ", after, "; expected 0 (none), 1 (softmax) or 2 (logistic)"));
}

void tree_ensemble(Call& c) {
  const Term x(c, 0);
  if (x.rank() != 2 || !is_float(x.dtype()))
    c.invalid(cat("its operand is ", dtype_name(x.dtype()), " with ", x.rank(),
                  " dims; expected floats [n, features]"));
  const std::vector<double> weights = tensor_of(c, "leaf_weights");
  const Ints target = c.ints("leaf_targetids"), roots = c.ints("tree_roots");
  const int64_t targets = c.required("n_targets");
  expect_count(c, "leaf_targetids", target.size(), weights.size());
  for (int64_t t : target)
    expect_below(c, "leaf_targetids", t, static_cast<size_t>(std::max<int64_t>(targets, 0)));
  const Forest forest{read_splits(c, weights.size()), roots, std::ssize(weights)};
  for (int64_t r : roots) expect_below(c, "tree_roots", r, forest.nodes.size());
  if (roots.empty()) c.invalid("tree_roots is empty");
  const int64_t how = c.i("aggregate_function", 1);
  expect_below(c, "aggregate_function", how, 4);
  Weights leaves{{}, targets, static_cast<Aggregate>(how), limit_of(x.dtype())};
  for (size_t i = 0; i < weights.size(); i++)
    leaves.all.push_back({static_cast<int64_t>(i), target[i], weights[i]});
  c.set(0, transformed_by_number(c, walked(c, x, forest, leaves)).v);
}

constexpr Rule kRules[] = {
    {"ai.onnx.ml.TreeEnsemble", 5, tree_ensemble,
     "aggregate_function leaf_targetids leaf_weights membership_values n_targets nodes_falseleafs "
     "nodes_falsenodeids nodes_featureids nodes_hitrates nodes_missing_value_tracks_true nodes_modes "
     "nodes_splits nodes_trueleafs nodes_truenodeids post_transform tree_roots"},
};

}  // namespace

Rules tree_rules() { return kRules; }

}  // namespace onnx_import
