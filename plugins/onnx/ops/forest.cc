// forest.cc: a forest as the op tree_ensemble, whose nodes come before their successors.
#include <algorithm>

#include "plugins/onnx/ops/trees.h"

namespace onnx_import {
namespace {

// The nodes, each before its successors; the nodes of a tree together, level after level.
Ints in_order(Call& c, const Splits& nodes) {
  Ints before(nodes.size(), 0), order;  // before: how many predecessors are not in the order yet
  const auto each = [&](int64_t node, auto&& f) {
    for (int64_t to : {nodes[static_cast<size_t>(node)].no, nodes[static_cast<size_t>(node)].yes})
      if (to >= 0) f(to, before[static_cast<size_t>(to)]);
  };
  for (int64_t i = 0; i < std::ssize(nodes); i++) each(i, [](int64_t, int64_t& n) { n++; });
  const Ints all = before;
  for (int64_t i = 0, done = 0; i < std::ssize(nodes); i++) {
    if (all[static_cast<size_t>(i)] == 0) order.push_back(i);
    while (done < std::ssize(order))
      each(order[static_cast<size_t>(done++)], [&](int64_t to, int64_t& n) {
        if (--n == 0) order.push_back(to);
      });
  }
  if (order.size() < nodes.size())
    c.invalid(cat("node ", std::ranges::find_if(before, [](int64_t n) { return n > 0; }) - before.begin(),
                  " leads back to itself, or follows a node that does; expected trees"));
  return order;
}

constexpr int64_t kNoColumn = -1, kSeveral = -2;
constexpr int64_t kMostWeights = int64_t{1} << 32;

int64_t merged(int64_t a, int64_t b) {
  if (a == kNoColumn) return b;
  return b == kNoColumn || a == b ? a : kSeveral;
}

// The column that all leaves of a tree add to, by tree.
Ints columns_of(const Forest& forest, const Ints& order, const Weights& weights) {
  Ints of_leaf(static_cast<size_t>(forest.leaves), kNoColumn), of_node(forest.nodes.size(), kNoColumn);
  for (const LeafWeight& w : weights.all) {
    int64_t& column = of_leaf[static_cast<size_t>(w.leaf)];
    column = merged(column, w.column);
  }
  const auto of = [&](int64_t to) {
    return to < 0 ? of_leaf[static_cast<size_t>(-1 - to)] : of_node[static_cast<size_t>(to)];
  };
  for (size_t k = order.size(); k-- > 0;) {
    const auto node = static_cast<size_t>(order[k]);
    of_node[node] = merged(of(forest.nodes[node].no), of(forest.nodes[node].yes));
  }
  Ints columns;
  for (int64_t root : forest.roots) columns.push_back(of(root));
  return columns;
}

// The weights as a matrix of leaves and columns; with one column, of all weights of a leaf.
Term matrix_of(Call& c, keel_dt dtype, int64_t leaves, int64_t columns, const Weights& weights) {
  const double start = weights.how == Aggregate::kLeast  ? weights.limit
                       : weights.how == Aggregate::kMost ? -weights.limit
                                                         : 0;
  if (columns > 0 && leaves > kMostWeights / columns)
    c.unsupported(cat("trees with ", leaves, " leaves that add to several of ", columns, " results"));
  std::vector<double> matrix(static_cast<size_t>(leaves * columns), start);
  for (const LeafWeight& w : weights.all) {
    double& to = matrix[static_cast<size_t>(w.leaf * columns + (columns == 1 ? 0 : w.column))];
    to = weights.how == Aggregate::kLeast  ? std::min(to, w.weight)
         : weights.how == Aggregate::kMost ? std::max(to, w.weight)
                                           : to + w.weight;
  }
  return stored(c.e, dtype, {leaves, columns}, matrix);
}

}  // namespace

Term walked(Call& c, const Term& x, const Forest& forest, const Weights& weights) {
  const Ints order = in_order(c, forest.nodes);
  const auto n = static_cast<int64_t>(order.size());
  Ints place(order.size());
  for (int64_t i = 0; i < n; i++) place[static_cast<size_t>(order[static_cast<size_t>(i)])] = i;
  const auto number = [&](int64_t to) { return to < 0 ? n - 1 - to : place[static_cast<size_t>(to)]; };
  std::vector<double> split, feature, test, next, root, target;
  for (int64_t i : order) {
    const Split& s = forest.nodes[static_cast<size_t>(i)];
    const auto after = static_cast<double>(split.size()) + 1;
    split.push_back(s.at);
    feature.push_back(static_cast<double>(s.feature));
    test.push_back(static_cast<double>(s.true_for));
    for (int64_t to : {s.no, s.yes}) next.push_back(static_cast<double>(number(to)) - after);
  }
  Ints columns = columns_of(forest, order, weights);
  const bool one_each = weights.how <= Aggregate::kSum && std::ranges::count(columns, kSeveral) == 0;
  for (size_t t = 0; t < columns.size(); t++) {
    root.push_back(static_cast<double>(number(forest.roots[t])));
    target.push_back(one_each ? static_cast<double>(std::max<int64_t>(columns[t], 0)) : 0);
  }
  const keel_dt dtype = wide(x.dtype());
  const auto trees = static_cast<int64_t>(root.size());
  const auto list = [&](keel_dt type, const std::vector<double>& v, Ints dims) {
    return stored(c.e, type, std::move(dims), v).v;
  };
  const Term weight = matrix_of(c, dtype, forest.leaves, one_each ? 1 : weights.columns, weights);
  const char* mode = weights.how == Aggregate::kLeast  ? "min"
                     : weights.how == Aggregate::kMost ? "max"
                                                       : "add";
  const Term y(c.e, c.e.op("tree_ensemble",
                           {x.to(dtype).v, list(dtype, split, {n}), list(KEEL_I32, feature, {n}),
                            list(KEEL_I32, test, {n}), list(KEEL_I32, next, {n, 2}),
                            list(KEEL_I32, root, {trees}), list(KEEL_I32, target, {trees}), weight.v},
                           Attrs().dim("size", weights.columns).word("mode", mode)));
  return (weights.how == Aggregate::kMean ? y / static_cast<double>(trees) : y).to(x.dtype());
}

}  // namespace onnx_import
