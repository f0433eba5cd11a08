// trees.h: forests of decision trees, as the operators on trees of ai.onnx.ml read them.
#pragma once
#include "plugins/onnx/ops/classes.h"

namespace onnx_import {

constexpr int64_t kLess = 1, kEqual = 2, kGreater = 4, kNan = 8;  // how a feature compares with a split
// By mode (0: x <= split, <, >=, >, ==, !=), the relations that lead to the true branch.
constexpr int64_t kTrueFor[] = {kLess | kEqual, kLess,  kEqual | kGreater,
                                kGreater,       kEqual, kLess | kGreater | kNan};

struct Split {
  int64_t feature, true_for;  // true_for: the relations that lead to yes
  int64_t yes, no;            // a node, or -1 - leaf
  double at;
};
using Splits = std::vector<Split>;
struct Forest {
  Splits nodes;
  Ints roots;  // a node, or -1 - leaf
  int64_t leaves = 0;
};

enum class Aggregate { kMean, kSum, kLeast, kMost };  // aggregate_function of TreeEnsemble

// What leaves add to the columns of the result.
struct LeafWeight {
  int64_t leaf, column;
  double weight;
};
struct Weights {
  std::vector<LeafWeight> all;
  int64_t columns;
  Aggregate how;
  double limit;  // of kLeast and kMost: the weight of a leaf in a column without one
};

// The weights of the leaves that the rows of x, [n, features], come to, combined over the trees: [n,
// columns], of the dtype of x. Nodes that lead back to themselves are an error.
Term walked(Call& c, const Term& x, const Forest& forest, const Weights& weights);

void expect_count(Call& c, const char* name, size_t got, size_t want);
void expect_below(Call& c, const char* name, int64_t i, size_t end);
// The features of operand 0, [n, features]; a large number if they are symbolic.
size_t features_of(Call& c);

// The numbers of an attribute that is a tensor; none if it is absent.
std::vector<double> tensor_of(Call& c, const char* name);

}  // namespace onnx_import
