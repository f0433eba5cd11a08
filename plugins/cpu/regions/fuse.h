// fuse.h: which nodes of a body become one primitive: a contraction (the anchor) with the elementwise
// nodes behind it, in their order, as long as each value is used once.
#pragma once

#include "dnnl.hpp"
#include "plugins/cpu/regions/body.h"

namespace keel_cpu {

struct PostOp {
  enum Kind : uint8_t { kUnary, kBinary } kind = kUnary;
  dnnl::algorithm algorithm = dnnl::algorithm::undef;
  float alpha = 0, beta = 0;
  uint32_t other = kNone;  // value, of kBinary
  uint32_t node = kNone;   // whose use of `other` it is
  // oneDNN's form gives a number for a NaN, or a NaN for an infinity; it raises the processor's flag for an
  // invalid operation where it does: see invalid.h.
  bool loses_nan = false;
};

// What a group of nodes asks of one primitive.
struct Recipe {
  std::vector<float> scale, shift;  // of each output channel, from constants; empty: none
  std::vector<PostOp> post;
  uint32_t out = kNone;  // the value that it makes
};

struct Group {
  uint32_t anchor = kNone;
  std::vector<uint32_t> nodes;  // behind the anchor, in order
  uint32_t Last() const { return nodes.empty() ? anchor : nodes.back(); }
};

bool IsContraction(const std::string& op);
bool IsConvGrad(const std::string& op);
// An elementwise node as post-ops on operand `in`; false: oneDNN has none for it.
bool PostOpsOf(const Body& body, uint32_t node, uint32_t in, std::vector<PostOp>* out);

std::vector<Group> MakeGroups(const Body& body);
// The recipe of a group's anchor with its first `count` nodes.
Recipe MakeRecipe(const Body& body, const Group& group, size_t count);

}  // namespace keel_cpu
