// passes.h: the passes of this plugin, each in its own file, and the driver of peephole rules.
#pragma once
#include <span>

#include "plugins/passes/edit/edit.h"

namespace keel_passes {

void inline_nodes(Edit&);
void loop(Edit&);
void fold(Edit&);
void unpack(Edit&);
void quantised(Edit&);
void simplify(Edit&);
void cse(Edit&);
void ahead(Edit&);
void nearby(Edit&);
void compose(Edit&);
void transpose(Edit&);
void layout(Edit&);
void within(Edit&);
void epilogue(Edit&);
void map(Edit&);

// A rule inspects one node of its op and may rewrite it; returns whether it did.
struct Rule {
  const char* op;
  bool (*apply)(Edit&, NodeId);
};
using Rules = std::span<const Rule>;
// Applies the rules to all nodes in program order until none applies.
void apply(Edit& e, std::initializer_list<Rules> rules);

Rules known_control_flow_rules();  // loops/known_control_flow.cc
Rules motion_rules();              // loops/motion.cc: loop-invariant code motion
// Most rules of simplify and nearby are text: passes.rules.
Rules moving_rules();     // simplify/moves.cc: ops that only move elements
Rules shape_rules();      // simplify/shapes.cc: moves around computing ops
Rules weight_rules();     // simplify/nearby_weights.cc
Rules softmax_rules();    // compose/softmax.cc
Rules norm_rules();       // compose/norm.cc
Rules gelu_rules();       // compose/gelu.cc
Rules attention_rules();  // compose/attention.cc

}  // namespace keel_passes
