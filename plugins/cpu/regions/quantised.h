// quantised.h: groups of nodes that one primitive computes on 8-bit integers: conv_integer, matmul_integer,
// or the sum of two dequantised operands, and the nodes after it up to the quantisation of the result.
#pragma once

#include "plugins/cpu/regions/fuse.h"

namespace keel_cpu {

// result = round(relu(sum * scale + shift)) + zero, saturated to an 8-bit dtype; an f32 result is neither
// rounded nor saturated, and an i32 result is the sum.
struct Quantised {
  std::vector<double> scale, shift;  // per channel, or one
  bool relu = false;
  float zero = 0;
  keel_dt dtype = KEEL_I32;
  uint32_t out = kNone;  // the value
};

// (cast(q) - zero) * scale with one zero point and one scale.
struct Dequantised {
  uint32_t q = kNone;
  double zero = 0, scale = 1;
  std::vector<uint32_t> nodes;  // that compute it, if no other node uses them
};

// Whether a group begins at this node: conv_integer, matmul_integer, or an addition of dequantised values
// whose sum is quantised. Does not take nodes that are taken.
bool FindQuantised(const Body& body, uint32_t anchor, const std::vector<bool>& taken, Group* group);
// Whether the body is a matmul_integer of constant weights and its group.
bool IsQuantisedProduct(const Body& body);
Quantised ReadQuantised(const Body& body, const Group& group);
// Operand i of an addition that is the anchor of such a group.
Dequantised ReadDequantised(const Body& body, uint32_t value);

}  // namespace keel_cpu
