// ops.h: the instructions of one scalar op. Rows of the shared table with an opcode need nothing here; ops.cc
// has the expansions, math.h the functions.
#pragma once

#include "dtypes.h"
#include "sdk/plugin/body.h"

namespace keel_spirv {

struct Operation {
  const keel::plugin::Step* step;
  std::vector<Value> in;
  keel_dt dtype, result;            // of operand 0 (select: 1); of the result
  Value index;                      // of the element, u64
  std::function<void(Value)> fail;  // stores a fault where the condition holds
  Value operator[](size_t i) const { return in[i]; }
};

// The op's result, rounded to its dtype; id 0: there is no such op for these dtypes.
Value Apply(const Operation& o);
bool MayFail(const keel::plugin::Step& step, keel_dt dtype);

}  // namespace keel_spirv
