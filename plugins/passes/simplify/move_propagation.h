// move_propagation.h: moves a transpose or reshape of a value to its inputs, if that needs fewer moves.
#pragma once
#include <unordered_map>
#include <unordered_set>

#include "plugins/passes/edit/edit.h"

namespace keel_passes {

// A pure move of elements: result dim i is dim perm[i]; if perm is empty, the dims become `to`.
struct Move {
  Ints perm;
  Dims to;
};

// The tree of ops between a value and the points where moves could end: elementwise ops, softmax, concat and
// reductions with kept axes, if their results have no other users. The values around the tree are its leaves.
class MovePropagation {
 public:
  MovePropagation(Edit& e, keel_value root, Move move);
  // Additional moves if the leaves are moved instead of the root; positive or kNever: not worthwhile.
  int cost() const;
  keel_value done();  // the moved root; new nodes are inserted at e.at()
  void fold();        // moves constants at compile time, after the result is used

 private:
  void reach(keel_value v);
  bool inside(NodeId n) const;
  int cost_of(keel_value leaf) const;
  bool all_uses(keel_value leaf) const;
  Dims full_dims(keel_value v) const;
  Ints after(const Ints& perm) const;  // perm followed by the move
  keel_value moved(keel_value v);
  keel_value moved_leaf(keel_value v);
  keel_value rebuilt(NodeId n);
  int64_t axis(int64_t old) const;

  Edit& e_;
  keel_value root_;
  Move move_;
  Dims dims_;  // of the root
  bool reduces_ = false;
  std::unordered_map<keel_value, size_t> uses_;  // uses within the tree
  std::unordered_set<NodeId> members_;
  Ids leaves_;
  std::unordered_map<keel_value, keel_value> done_;
  Ids to_fold_;
};

Ints inverse(const Ints& perm);
// Whether the dims other than 1 keep their order.
bool keeps_order(const Dims& dims, const Ints& perm);

}  // namespace keel_passes
