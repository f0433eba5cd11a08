// attention.h: the operands of an attention, for the op and for calls that end in it.
#pragma once

#include "plugins/cpu/common.h"

namespace keel_cpu {

// Keys or values: operands of the launch with some rows of each head, one after the other.
struct AttentionRows {
  struct Part {
    int operand;
    int64_t count;
  };
  std::vector<Part> parts;

  // f(data of the head in the operand, its rows, number of the first one)
  template <class F>
  void EachPart(const keel_call* call, int64_t head, int64_t row_bytes, F f) const {
    int64_t first = 0;
    for (const Part& p : parts) {
      f(In<char>(call, p.operand) + head * p.count * row_bytes, p.count, first);
      first += p.count;
    }
  }
  const char* RowAt(const keel_call* call, int64_t head, int64_t row_bytes, int64_t row) const {
    const char* at = nullptr;
    EachPart(call, head, row_bytes, [&](const char* part, int64_t count, int64_t first) {
      if (first <= row && row < first + count) at = part + (row - first) * row_bytes;
    });
    return at;
  }
};

struct AttentionOperands {
  int q, mask;  // operands of the launch; mask -1: none
  AttentionRows k, v;
};

// Prepares an attention, `node`, with operands that the launch has.
keel_rc KeepAttention(const Node& node, AttentionOperands operands, keel_launch* launch);

// A `call` of an attention and the concatenations of its keys or values (attention_joined.cc): as of a
// decoder that adds the rows of a token to kept ones. They are read where they are.
bool IsJoinedAttention(const Node& call);
keel_rc PrepareJoinedAttention(const Node& call, keel_launch* launch);

}  // namespace keel_cpu
