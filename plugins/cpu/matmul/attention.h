// attention.h: where the operands of an attention are, for the op and for calls that end in it.
#pragma once

#include "plugins/cpu/common.h"

namespace keel_cpu {

// Rows of each head, in operands of the launch, one after the other.
struct AttentionRows {
  struct Part {
    int operand;
    int64_t rows;
    bool turned;  // the heads are between the rows: [batch, rows, heads, columns]
  };
  std::vector<Part> parts;
};

struct AttentionForm {
  AttentionRows q, k, v;  // q has one part
  int mask = -1;          // the operand; -1: none
  bool result_turned = false;
};

// Whether the rows of a head's result may be apart.
bool CanTurnResult(const Node& attention);
// Prepares an attention with operands that the launch has.
keel_rc KeepAttention(const Node& attention, const AttentionForm& form, keel_launch* launch);

// A `call` of an attention and moves of its rows (attention_call.cc).
bool IsAttentionCall(const Node& call);
keel_rc PrepareAttentionCall(const Node& call, keel_launch* launch);

}  // namespace keel_cpu
