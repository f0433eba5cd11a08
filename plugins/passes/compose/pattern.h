// pattern.h: recognises the ops that a composite is spelled out in.
//
// How to read it: a Pattern starts at a node, the root, whose result the composite would give. Each step
// names an op that must have made a value, and takes the node in; a step that fails gives KEEL_NO_VALUE or
// kNone. Where operands may come either way round, a step is tried on a copy. In the end nothing but the
// root's result may be used, or asked for, outside of the nodes taken in.
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
  keel_value operand(keel_value v, std::string_view op);  // of a node with one operand
  keel_value plain(keel_value v);                         // without identity and stop_gradient

  // x, where v broadcasts with x as `op` of x along one axis, kept; "reduce_mean" also as a sum and a factor.
  keel_value reduced(keel_value v, std::string_view op, int64_t* axis);
  keel_value squared(keel_value v);                                 // x of x * x
  keel_value inverted(keel_value v);                                // x of 1 / x
  keel_value power(keel_value v, const char* op, double exponent);  // x of op(x) or pow(x, exponent)
  // v without factors that are numbers; stops at what others use.
  keel_value unscaled(keel_value v, double* factor);

  // f(p, a, b) of a node's two operands, either way round.
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

  // Puts the composite in the root's place, if it is one for the device and all conditions hold.
  bool closed() const;
  bool become(const char* op, const Ids& in, const Attrs& attrs);

 private:
  keel_value averaged(keel_value v, double* factor);
  Edit* edit_;
  std::vector<NodeId> nodes_;
};

}  // namespace keel_passes
