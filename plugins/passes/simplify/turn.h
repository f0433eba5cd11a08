// turn.h: a value that is wanted with its elements moved, by a transpose or a reshape: can what it is
// computed from be moved instead, and are there fewer moves then?
#pragma once
#include <unordered_map>
#include <unordered_set>

#include "plugins/passes/edit/edit.h"

namespace keel_passes {

// Elements that only change places: result dim i is dim perm[i]; where perm is empty, the dims become `to`.
struct Move {
  Ints perm;
  Dims to;
};

// The ops between a value and where moves could end: elementwise ones, softmax, concat, reductions that keep
// their axes, as far as nobody else uses what they make. Around them stand the leaves.
class Turn {
 public:
  Turn(Edit& e, keel_value root, Move move);
  // How many moves there are more when all leaves are moved instead of the root; above 0: or it is not
  // possible.
  int cost() const;
  keel_value done();  // the root, moved; new nodes stand where e.at() says
  void fold();        // once it is used: constants are moved at once

 private:
  void reach(keel_value v);
  bool inside(NodeId n) const;
  int cost_of(keel_value leaf) const;
  bool all_uses(keel_value leaf) const;
  Dims full_dims(keel_value v) const;
  Ints after(const Ints& perm) const;  // that, and then the move
  keel_value moved(keel_value v);
  keel_value moved_leaf(keel_value v);
  keel_value rebuilt(NodeId n);
  int64_t axis(int64_t old) const;

  Edit& e_;
  keel_value root_;
  Move move_;
  Dims dims_;  // of the root
  bool reduces_ = false;
  std::unordered_map<keel_value, size_t> uses_;  // found in the tree
  std::unordered_set<NodeId> members_;
  Ids leaves_;
  std::unordered_map<keel_value, keel_value> done_;
  Ids to_fold_;
};

Ints inverse(const Ints& perm);
// Do the dims that are not 1 keep their order?
bool keeps_order(const Dims& dims, const Ints& perm);

}  // namespace keel_passes
