// trees.cc: tree_ensemble as TreeEnsembleRegressor of ai.onnx.ml 3, whose lists have the nodes tree by tree.
// Nodes with several predecessors are written as often as paths lead to them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "plugins/onnx/export/call.h"

namespace onnx_export {
namespace {

enum Operand : uint32_t { kX, kSplit, kFeature, kTest, kNext, kRoot, kTarget, kWeight };
constexpr int64_t kLess = 1, kEqual = 2, kGreater = 4, kNan = 8, kNumbers = 7, kAll = 15;  // as in the op
constexpr size_t kMostNodes = size_t{1} << 24;                                             // of all trees

// Of numbers. Each other set is without one of these, and the branches change places.
struct Mode {
  int64_t relations;
  const char* name;
};
constexpr Mode kModes[] = {
    {kLess | kEqual, "BRANCH_LEQ"}, {kLess, "BRANCH_LT"},  {kEqual | kGreater, "BRANCH_GTE"},
    {kGreater, "BRANCH_GT"},        {kEqual, "BRANCH_EQ"}, {kNumbers, "BRANCH_LEQ"}};  // the last: to inf

struct Branch {
  const char* mode;
  float value;
  bool nan;   // whether NaN leads to the true branch
  bool swap;  // whether the branches change places
};

// A branch that is true for a set of relations.
Branch branch_of(int64_t relations, float split) {
  if (std::isnan(split)) relations = (relations & kNan) != 0 ? kAll : int64_t{0};
  const auto find = [](int64_t set) { return std::ranges::find(kModes, set & kNumbers, &Mode::relations); };
  const bool swap = find(relations) == std::end(kModes);
  const int64_t set = swap ? ~relations : relations;
  const float value = (set & kNumbers) == kNumbers ? std::numeric_limits<float>::infinity() : split;
  return {find(set)->name, value, (set & kNan) != 0, swap};
}

class Trees {
 public:
  explicit Trees(Call& c) : c_(c) {
    for (uint32_t i = kSplit; i <= kWeight; i++) {
      if (!c.data(i)) throw Refused{"of trees that are not constant"};
      of_[i] = c.scope.type(c.in_value(i));
    }
    nodes_ = of_[kSplit].shape[0], leaves_ = of_[kWeight].shape[0], width_ = of_[kWeight].shape[1];
  }

  void give() {
    const keel_dim size = c_.out_dims()[1];
    const std::string mode = c_.word("mode");
    const int64_t trees = of_[kRoot].shape[0];
    if (c_.dtype() != KEEL_F32) throw Refused{"of f64: ONNX's operator returns f32"};
    if (KEEL_DIM_IS_HANDLE(size)) throw Refused{"with a symbolic size"};
    if (trees == 0 || width_ == 0) throw Refused{"of no trees or no weights"};
    if (mode != "add" && width_ != size) throw Refused{"whose trees leave out columns"};
    for (int64_t t = 0; t < trees; t++) add_tree(t, size);
    c_.scope.model().need_domain("ai.onnx.ml", 3);
    c_.give("ai.onnx.ml.TreeEnsembleRegressor", {c_.in(kX)},
            NodeAttrs()
                .i("n_targets", size)
                .s("aggregate_function", mode == "add"   ? "SUM"
                                         : mode == "max" ? "MAX"
                                                         : "MIN")
                .ints("nodes_treeids", tree_)
                .ints("nodes_nodeids", node_)
                .ints("nodes_featureids", feature_)
                .strings("nodes_modes", modes_)
                .floats("nodes_values", value_)
                .ints("nodes_truenodeids", yes_)
                .ints("nodes_falsenodeids", no_)
                .ints("nodes_missing_value_tracks_true", nan_)
                .ints("target_treeids", leaf_tree_)
                .ints("target_nodeids", leaf_node_)
                .ints("target_ids", target_)
                .floats("target_weights", weight_));
  }

 private:
  int64_t index(Operand o, int64_t i, int64_t end) const {
    const void* data = keel_ptr(&of_[o]);
    const int64_t index = keel_dt_of(&of_[o]) == KEEL_I32 ? static_cast<const int32_t*>(data)[i]
                                                          : static_cast<const int64_t*>(data)[i];
    if (index < 0 || index >= end) throw Refused{"with an index out of range"};
    return index;
  }
  float number(Operand o, int64_t i) const { return static_cast<const float*>(keel_ptr(&of_[o]))[i]; }

  void add_tree(int64_t t, int64_t size) {
    const int64_t target = index(kTarget, t, size - width_ + 1);
    found_ = {index(kRoot, t, nodes_ + leaves_)};
    for (size_t k = 0; k < found_.size(); k++) {
      tree_.push_back(t);
      node_.push_back(static_cast<int64_t>(k));
      if (found_[k] < nodes_)
        add_branch(found_[k]);
      else
        add_leaf(t, static_cast<int64_t>(k), found_[k] - nodes_, target);
      if (tree_.size() > kMostNodes) throw Refused{"of too many nodes"};
    }
  }

  void add_node(const char* mode, int64_t feature, float value, int64_t yes, int64_t no, bool nan) {
    modes_.emplace_back(mode);
    feature_.push_back(feature);
    value_.push_back(value);
    yes_.push_back(yes);
    no_.push_back(no);
    nan_.push_back(nan);
  }
  void add_branch(int64_t i) {
    const Branch b = branch_of(index(kTest, i, std::numeric_limits<int64_t>::max()), number(kSplit, i));
    const auto to = [&](int64_t k) {
      found_.push_back(i + 1 + index(kNext, 2 * i + k, nodes_ + leaves_ - i - 1));
      return std::ssize(found_) - 1;
    };
    const int64_t no = to(0), yes = to(1);
    add_node(b.mode, index(kFeature, i, std::numeric_limits<int32_t>::max()), b.value, b.swap ? no : yes,
             b.swap ? yes : no, b.nan);
  }
  void add_leaf(int64_t t, int64_t k, int64_t leaf, int64_t target) {
    add_node("LEAF", 0, 0, 0, 0, false);
    for (int64_t j = 0; j < width_; j++) {
      leaf_tree_.push_back(t);
      leaf_node_.push_back(k);
      target_.push_back(target + j);
      weight_.push_back(number(kWeight, leaf * width_ + j));
    }
  }

  Call& c_;
  keel_tensor of_[kWeight + 1] = {};
  int64_t nodes_, leaves_, width_;
  Ints found_;  // the nodes of the present tree, and leaves, numbered behind the nodes of the op
  Ints tree_, node_, feature_, yes_, no_, nan_, leaf_tree_, leaf_node_, target_;
  Names modes_;
  std::vector<float> value_, weight_;
};

void tree_ensemble(Call& c) { Trees(c).give(); }

constexpr Row kRows[] = {{"tree_ensemble", tree_ensemble}};

}  // namespace

Rows tree_rows() { return kRows; }

}  // namespace onnx_export
