// forest.h: the trees of a tree_ensemble, packed for walking. A walk has one comparison and no branch a step:
//
// - Rows are walked in blocks of kLanes. The block contains, column after column, the features that the trees
//   read, negated ones among them, since `x < split or x is NaN` is `not -x <= -split`. So a node needs one
//   form of test, x <= split, which is false for NaN. A node with another set of relations becomes up to
//   three.
// - The two successors of a node are neighbours: the test is added to the address of the first.
// - A leaf compares column 0, which is NaN, and leads to itself, so lanes that are done wait for the others.
#pragma once

#include <memory>

#include "plugins/cpu/common.h"

namespace keel_cpu {

inline constexpr int64_t kLanes = 8;

// Operands of tree_ensemble.
enum TreeOperand { kX, kSplit, kFeature, kTest, kNext, kRoot, kTarget, kWeight, kTreeOperands };

// U: u16 for trees that are small enough, as nodes are loaded all the time.
template <class T, class U>
struct PackedNode {
  T split;   // of a leaf: its weight, or its number if it has several (LeafNumber)
  U column;  // times kLanes
  U step;    // nodes from here to the successor for a test that is false; 0: a leaf
};

struct Column {
  int64_t feature;
  bool negated;
};

struct Tree {
  uint32_t root;  // a node
  uint32_t depth;
  int64_t target;
};

// A packed ensemble; its nodes are PackedNode of one of three forms.
struct Forest {
  std::vector<Column> columns;  // 0 is of no feature
  std::vector<Tree> trees;
  std::vector<char> nodes;
  int64_t features = 0;  // more than any feature that the nodes read
  int64_t targets = 0;   // more than any target
  int64_t steps = 0;     // of all trees, down to their deepest leaves
  bool wide = false;     // numbers of 32 bits
};

// The number of a leaf among all, in the bits of its `split`.
template <class T>
uint32_t LeafNumber(T split) {
  uint32_t number;
  __builtin_memcpy(&number, &split, sizeof number);
  return number;
}

// Throws for an index out of range. `size`: the columns of the result; -1, as for the features of x: not
// known yet.
std::shared_ptr<const Forest> PackForest(const keel_tensor* const* in, int64_t size);

}  // namespace keel_cpu
