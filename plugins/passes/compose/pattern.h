// pattern.h: recognises the ops that a composite is spelled out in.
//
// A Pattern starts at a node, the root, whose result the composite replaces. Each step names the op that must
// produce a value and adds that node to the pattern; a failed step returns KEEL_NO_VALUE or kNone. If
// operands may be in either order, each order is tried on a copy. At the end, only the root's result may be
// used or fetched outside the pattern.
#pragma once
#include "plugins/passes/edit/edit.h"

namespace keel_passes {

class Pattern {
 public:
  Pattern(Edit& e, NodeId root) : edit_(&e), nodes_{root} {}
  Edit& edit() const { return *edit_; }
  NodeId root() const { return nodes_[0]; }
  keel_dt dtype() const { return edit_->type(edit_->out(nodes_[0])).dtype; }

  NodeId made_by(keel_value v, std::string_view op);
  keel_value operand(keel_value v, std::string_view op);  // the operand of a unary node
  keel_value plain(keel_value v);                         // without identity and stop_gradient

  // x, if v broadcasts with x like `op` of x along one axis with the axis kept; "reduce_mean" may also be a
  // sum and a factor.
  keel_value reduced(keel_value v, std::string_view op, int64_t* axis);
  keel_value squared(keel_value v);                                 // x of x * x
  keel_value inverted(keel_value v);                                // x of 1 / x
  keel_value power(keel_value v, const char* op, double exponent);  // x of op(x) or pow(x, exponent)
  // v without constant factors; stops at values with other users.
  keel_value unscaled(keel_value v, double* factor);

  // Calls f(p, a, b) with a node's two operands in either order.
  template <class F>
  bool either(NodeId n, F f) {
    for (size_t i = 0; n != kNone && i < 2; i++) {
      Pattern p = *this;
      if (!f(p, edit_->in(n, i), edit_->in(n, 1 - i))) continue;
      *this = p;
      return true;
    }
    return false;
  }

  // Replaces the root by the composite if the device has an impl of it and the pattern is closed.
  bool closed() const;
  bool become(const char* op, const Ids& in, const Attrs& attrs);

 private:
  keel_value averaged(keel_value v, double* factor);
  Edit* edit_;
  std::vector<NodeId> nodes_;
};

}  // namespace keel_passes
