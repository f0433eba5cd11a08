// tree_nodes.cc: TreeEnsembleRegressor and TreeEnsembleClassifier of ai.onnx.ml, which list nodes by the
// numbers of their trees.
#include <algorithm>
#include <limits>
#include <map>

#include "plugins/onnx/ops/trees.h"

namespace onnx_import {
namespace {

using NodeKey = std::pair<int64_t, int64_t>;  // a tree and a node

// A list of floats, or the tensor that replaces it for doubles.
std::vector<double> numbers_of(Call& c, const std::string& name) {
  const std::vector<float> floats = c.floats(name.c_str());
  return floats.empty() ? tensor_of(c, (name + "_as_tensor").c_str())
                        : std::vector<double>(floats.begin(), floats.end());
}

struct Listed {
  Forest forest;
  std::map<NodeKey, int64_t> places;  // of each node: a node of the forest, or -1 - leaf
};

int64_t mode_of(Call& c, const std::string& mode) {
  constexpr const char* kModes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                    "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  const auto found = std::ranges::find(kModes, mode);
  if (found == std::end(kModes))
    c.invalid(cat("nodes_modes contains '", mode, "'; expected BRANCH_LEQ ... or LEAF"));
  return kTrueFor[found - kModes];
}

// The first node that is listed of a tree is its root.
Listed read_nodes(Call& c) {
  const Ints tree = c.ints("nodes_treeids"), node = c.ints("nodes_nodeids"),
             feature = c.ints("nodes_featureids"), yes = c.ints("nodes_truenodeids"),
             no = c.ints("nodes_falsenodeids"), nan = c.ints("nodes_missing_value_tracks_true");
  const std::vector<std::string> modes = c.strings("nodes_modes");
  const std::vector<double> at = numbers_of(c, "nodes_values");
  const size_t n = tree.size(), width = features_of(c);
  if (n == 0) c.invalid("nodes_treeids is empty; expected trees");
  expect_count(c, "nodes_nodeids", node.size(), n);
  expect_count(c, "nodes_featureids", feature.size(), n);
  expect_count(c, "nodes_truenodeids", yes.size(), n);
  expect_count(c, "nodes_falsenodeids", no.size(), n);
  expect_count(c, "nodes_modes", modes.size(), n);
  expect_count(c, "nodes_values", at.size(), n);
  if (!nan.empty()) expect_count(c, "nodes_missing_value_tracks_true", nan.size(), n);
  Listed made;
  int64_t branches = 0;
  for (size_t i = 0; i < n; i++) {
    const int64_t place = modes[i] == "LEAF" ? -1 - static_cast<int64_t>(made.forest.leaves++) : branches++;
    if (!made.places.try_emplace({tree[i], node[i]}, place).second)
      c.invalid(cat("node ", node[i], " of tree ", tree[i], " is listed twice"));
  }
  const auto place_of = [&](const char* name, int64_t t, int64_t i) {
    const auto found = made.places.find({t, i});
    if (found == made.places.end())
      c.invalid(cat(name, " contains ", i, ", but tree ", t, " has no such node"));
    return found->second;
  };
  std::map<int64_t, int64_t> roots;
  for (size_t i = 0; i < n; i++) {
    roots.try_emplace(tree[i], place_of("nodes_nodeids", tree[i], node[i]));
    if (modes[i] == "LEAF") continue;
    expect_below(c, "nodes_featureids", feature[i], width);
    made.forest.nodes.push_back({feature[i], mode_of(c, modes[i]) | (!nan.empty() && nan[i] ? kNan : 0),
                                 place_of("nodes_truenodeids", tree[i], yes[i]),
                                 place_of("nodes_falsenodeids", tree[i], no[i]), at[i]});
  }
  for (const auto& [t, root] : roots) made.forest.roots.push_back(root);
  return made;
}

// The weights of the leaves for each result, from lists whose names begin with `list`.
Weights read_weights(Call& c, const Listed& listed, const std::string& list, size_t results, Aggregate how) {
  const auto ints = [&](const char* what) { return c.ints((list + what).c_str()); };
  const Ints tree = ints("_treeids"), node = ints("_nodeids"), id = ints("_ids");
  const std::vector<double> weight = numbers_of(c, list + "_weights");
  for (const auto& [name, got] :
       {std::pair{"_nodeids", node.size()}, {"_treeids", tree.size()}, {"_ids", id.size()}})
    expect_count(c, (list + name).c_str(), got, weight.size());
  // A result that no leaf adds to is the limit, as in onnx.reference.
  Weights made{{}, static_cast<int64_t>(results), how, std::numeric_limits<float>::max()};
  for (size_t i = 0; i < weight.size(); i++) {
    expect_below(c, (list + "_ids").c_str(), id[i], results);
    const auto found = listed.places.find({tree[i], node[i]});
    if (found == listed.places.end() || found->second >= 0)
      c.invalid(cat(list, "_nodeids contains ", node[i], ", which is no leaf of tree ", tree[i]));
    made.all.push_back({-1 - found->second, id[i], weight[i]});
  }
  return made;
}

Term floats_of(Call& c) {
  const Term x(c, 0);
  return is_float(x.dtype()) ? x : x.to(KEEL_F32);
}

// The results of all rows, [n, results], in f32.
Term results_of(Call& c, const Listed& listed, const Weights& weights) {
  return walked(c, floats_of(c), listed.forest, weights).to(KEEL_F32);
}

Term with_base(Call& c, const Term& y, size_t results) {
  const std::vector<double> base = numbers_of(c, "base_values");
  if (base.empty()) return y;
  expect_count(c, "base_values", base.size(), results);
  return y + constant_of(c.e, KEEL_F32, base);
}

void tree_regressor(Call& c) {
  constexpr const char* kAggregates[] = {"AVERAGE", "SUM", "MIN", "MAX"};  // as Aggregate
  const std::string name = c.s("aggregate_function", "SUM");
  const auto how = std::ranges::find(kAggregates, name);
  if (how == std::end(kAggregates))
    c.invalid(cat("aggregate_function is '", name, "'; expected SUM, AVERAGE, MIN or MAX"));
  const int64_t targets = c.required("n_targets");
  if (targets < 1) c.invalid(cat("n_targets is ", targets, "; expected 1 or more"));
  const auto results = static_cast<size_t>(targets);
  const Listed listed = read_nodes(c);
  const Weights weights =
      read_weights(c, listed, "target", results, static_cast<Aggregate>(how - kAggregates));
  c.set(0, transformed(c, with_base(c, results_of(c, listed, weights), results)).v);
}

// Two classes, one known to the leaves: its score, and the other's. Scores that may be negative are not
// probabilities: the first class has the negated one, and 0 divides them.
Term of_two(Call& c, const Term& y) {
  const std::vector<double> weights = numbers_of(c, "class_weights");
  const bool probabilities = std::ranges::all_of(weights, [](double w) { return w >= 0; });
  return concat({probabilities ? 1 - y : -y, y}, 1);
}

void tree_classifier(Call& c) {
  const Labels labels = class_labels(c, "classlabels_int64s");
  const Ints ids = c.ints("class_ids");
  const size_t classes = labels.size();
  const bool one_known = classes == 2 && !ids.empty() && std::ranges::count(ids, ids[0]) == std::ssize(ids);
  const Listed listed = read_nodes(c);
  Weights weights = read_weights(c, listed, "class", classes, Aggregate::kSum);
  if (one_known) {
    weights.columns = 1;
    for (LeafWeight& w : weights.all) w.column = 0;
  }
  const Term known = with_base(c, results_of(c, listed, weights), one_known ? 1 : classes);
  const Term scores = one_known ? of_two(c, known) : known;
  give_labels(c, labels, scores);
  c.set(1, transformed(c, scores).v);
}

#define NODES                                                                                               \
  "base_values base_values_as_tensor nodes_falsenodeids nodes_featureids nodes_hitrates "                   \
  "nodes_hitrates_as_tensor "                                                                               \
  "nodes_missing_value_tracks_true nodes_modes nodes_nodeids nodes_treeids nodes_truenodeids nodes_values " \
  "nodes_values_as_tensor post_transform "
constexpr Rule kRules[] = {
    {"ai.onnx.ml.TreeEnsembleRegressor", 1, tree_regressor,
     NODES "aggregate_function n_targets target_ids target_nodeids target_treeids target_weights "
           "target_weights_as_tensor"},
    {"ai.onnx.ml.TreeEnsembleClassifier", 1, tree_classifier,
     NODES "class_ids class_nodeids class_treeids class_weights class_weights_as_tensor classlabels_int64s "
           "classlabels_strings"},
};

}  // namespace

Rules tree_node_rules() { return kRules; }

}  // namespace onnx_import
