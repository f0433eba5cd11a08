// trees.cc: forests, and TreeEnsemble of ai.onnx.ml 5. All trees walk at once: the state of a row in a tree
// is a node, or a leaf, which is its own successor, so as many steps as the deepest tree has lead every row
// to its leaf.
#include "plugins/onnx/ops/trees.h"

#include <algorithm>
#include <cmath>

#include "plugins/onnx/ops/loop.h"

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
  return KEEL_DIM_IS_HANDLE(d[1]) ? size_t{1} << 40 : static_cast<size_t>(d[1]);
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

// The number of steps from the roots to the farthest leaf. A stack in place of recursion: trees may be deep.
int64_t depth_of(Call& c, const Forest& forest) {
  const Splits& nodes = forest.nodes;
  constexpr int64_t kNew = -1, kOpen = -2;
  Ints depth(nodes.size(), kNew), stack;
  for (int64_t root : forest.roots)
    if (root >= 0) stack.push_back(root);
  while (!stack.empty()) {
    const auto i = static_cast<size_t>(stack.back());
    if (depth[i] >= 0) {
      stack.pop_back();
      continue;
    }
    int64_t below = 0;
    const bool opened = depth[i] == kOpen;
    depth[i] = kOpen;
    for (int64_t to : {nodes[i].yes, nodes[i].no}) {
      if (to < 0) continue;
      const int64_t d = depth[static_cast<size_t>(to)];
      if (d == kOpen) c.invalid(cat("node ", to, " leads back to itself; expected trees"));
      if (d == kNew) stack.push_back(to);
      below = std::max(below, d);
    }
    if (stack.back() != static_cast<int64_t>(i) && !opened) continue;
    stack.pop_back();
    depth[i] = below + 1;
  }
  int64_t most = 0;
  for (int64_t root : forest.roots)
    if (root >= 0) most = std::max(most, depth[static_cast<size_t>(root)]);
  return most;
}

// The comparison of all nodes, as the forests of most trainers do; null: they differ.
const char* common_comparison(const Splits& nodes) {
  const auto all = [&](int64_t true_for) {
    return std::ranges::all_of(nodes, [&](const Split& s) { return s.true_for == true_for; });
  };
  return all(kLess | kEqual) ? "less_equal" : all(kLess) ? "less" : nullptr;
}

Term relation(const Term& value, const Term& split) {
  const auto is = [&](int64_t r) {
    return Term(value.edit(), value.edit().scalar(KEEL_I64, static_cast<double>(r)));
  };
  return select(value < split, is(kLess),
                select(value == split, is(kEqual), select(value > split, is(kGreater), is(kNan))));
}

}  // namespace

Term leaf_of(Call& c, const Term& x, const Forest& forest) {
  Edit& e = c.e;
  const Splits& nodes = forest.nodes;
  const auto n = static_cast<int64_t>(nodes.size());
  const auto number = [&](int64_t branch) { return branch < 0 ? n - 1 - branch : branch; };
  std::vector<double> at;
  Ints feature, true_for, next;
  for (const Split& s : nodes) {
    at.push_back(s.at), feature.push_back(s.feature), true_for.push_back(s.true_for);
    next.insert(next.end(), {number(s.no), number(s.yes)});
  }
  for (int64_t i = n; i < n + static_cast<int64_t>(forest.leaves); i++) {
    at.push_back(0), feature.push_back(0), true_for.push_back(0);
    next.insert(next.end(), {i, i});
  }
  ScanOperands in;
  Ints roots;
  for (int64_t root : forest.roots) roots.push_back(number(root));
  const Dims shape{x.dim(0), static_cast<int64_t>(roots.size())};
  in.carried = {constant_of(e, roots).broadcast(shape)};
  in.invariants = {x, constant_of(e, x.dtype(), at), constant_of(e, feature), constant_of(e, true_for),
                   constant_of(e, next)};
  in.scanned = {counting_term(e, depth_of(c, forest), KEEL_I64)};
  const char* all = common_comparison(nodes);
  const Terms out = scan(e, in, [&](const Terms& state, const Terms& p, const Terms&) {
    const Term &where = state[0], split = p[1].gather(where, 0);
    const Term value = p[0].op("gather_elements", p[2].gather(where, 0), Attrs().i("axis", 1));
    const Term yes =
        all ? value.op(all, split) : p[3].gather(where, 0).op("bit_and", relation(value, split)) > 0;
    return Terms{p[4].gather(where * 2 + yes.to(KEEL_I64), 0)};
  });
  return out[0] - static_cast<double>(n);
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

// The weights of the leaves, [n, trees], by target, [n, targets].
Term aggregated(Call& c, const Term& weight, const Term& target, int64_t targets) {
  const int64_t how = c.i("aggregate_function", 1);
  const Term hit = target.unsqueeze(2) == counting_term(c.e, targets, KEEL_I64);
  const Term w = weight.unsqueeze(2);
  // A target that no leaf has is the limit, as in onnx.reference.
  const double limit = weight.dtype() == KEEL_F64   ? 1.7976931348623157e308
                       : weight.dtype() == KEEL_F32 ? 3.4028234663852886e38
                                                    : 65504;
  if (how == 2) return select(hit, w, limit).reduced("reduce_min", {1});
  if (how == 3) return select(hit, w, -limit).reduced("reduce_max", {1});
  const Term sum = select(hit, w, 0).sum({1});
  return how == 0 ? sum / weight.size(weight.dim(1)) : sum;
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
  const Forest forest{read_splits(c, weights.size()), roots, weights.size()};
  for (int64_t r : roots) expect_below(c, "tree_roots", r, forest.nodes.size());
  if (roots.empty()) c.invalid("tree_roots is empty");
  expect_below(c, "aggregate_function", c.i("aggregate_function", 1), 4);
  const Term leaf = leaf_of(c, x, forest);
  const Term weight = constant_of(c.e, x.dtype(), weights).gather(leaf, 0);
  c.set(0,
        transformed_by_number(c, aggregated(c, weight, constant_of(c.e, target).gather(leaf, 0), targets)).v);
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
