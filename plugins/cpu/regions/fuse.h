// fuse.h: selects the nodes of a body that become one primitive: a contraction (the anchor) followed by
// elementwise nodes, in their order, as long as each value has one use.
#pragma once

#include "dnnl.hpp"
#include "plugins/cpu/regions/body.h"

namespace keel_cpu {

struct PostOp {
  enum Kind : uint8_t { kUnary, kBinary } kind = kUnary;
  dnnl::algorithm algorithm = dnnl::algorithm::undef;
  float alpha = 0, beta = 0;
  uint32_t other = kNone;  // the other operand of kBinary
  uint32_t node = kNone;   // the node that uses `other`
  // oneDNN's implementation returns a number for a NaN, or a NaN for an infinity, and raises the processor's
  // invalid-operation flag when it does: see invalid.h.
  bool loses_nan = false;
};

// One primitive for a group of nodes.
struct Recipe {
  // Per output channel, from constants; empty: none.
  std::vector<double> scale;
  std::vector<float> shift;
  std::vector<PostOp> post;
  uint32_t out = kNone;  // its result
};

struct Group {
  uint32_t anchor = kNone;
  std::vector<uint32_t> nodes;   // after the anchor, in order
  std::vector<uint32_t> before;  // nodes whose results only this group would read, and does not need
  uint32_t Last() const { return nodes.empty() ? anchor : nodes.back(); }
};

bool IsContraction(const std::string& op);
bool IsConvGrad(const std::string& op);
// Appends the post-ops of an elementwise node with operand `in`; false: oneDNN has none.
bool PostOpsOf(const Body& body, uint32_t node, uint32_t in, std::vector<PostOp>* out);

// A contraction and the nodes after it, without nodes that are taken.
Group GroupAfter(const Body& body, uint32_t anchor, const std::vector<bool>& taken);
// All groups of a body, those in quantised.h, too.
std::vector<Group> MakeGroups(const Body& body);
// The recipe of a group's anchor and its first `count` nodes.
Recipe MakeRecipe(const Body& body, const Group& group, size_t count);

}  // namespace keel_cpu
