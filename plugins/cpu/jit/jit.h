// jit.h: machine code for a run of elementwise ops, which keeps intermediate values in registers.
//
// A JitBody lists values by dtype and ops on them in order. FindJit checks whether an op is supported;
// CompileFlat compiles a function over arrays. ops.cc has a row per op, assembler.h allocates registers,
// flat.cc emits the loop, masks.cc the instructions of bools, memory.cc publishes the code. The bits equal
// those of the ops' own loops: no two roundings are fused. Needs AVX2 or AVX-512 and executable memory;
// without them every function here declines, and the callers interpret.
#pragma once

#include <memory>
#include <vector>

#include "abi/keel_plugin.h"

namespace keel_cpu {

struct JitRow;  // emits one op for some dtypes

// Null: no machine code for this op with these dtypes.
const JitRow* FindJit(const char* op, const keel_dt* in, keel_dt out);

bool HasRegisters(keel_dt);  // whether a JitBody can have values of this dtype

struct JitOp {
  const JitRow* row;  // null if `function` computes it, in scalar loops only
  uint32_t in[3];     // values
  uint32_t out;
  uint8_t n_in;
  const void* function = nullptr;  // UnaryLoop or BinaryLoop, by n_in
};
struct JitBody {
  std::vector<keel_dt> values;
  std::vector<JitOp> ops;
};

// An operand or result of a flat program; its data is at at[slot].
struct JitPort {
  uint32_t value;
  uint16_t slot;
  bool one;       // has one element, which broadcasts
  int ahead = 0;  // of an operand: the element so much later is fetched into the second-level cache
};
using FlatLoop = void(char* const* at, int64_t n);
using FlatCode = std::shared_ptr<FlatLoop>;

// Runs all ops on n elements. Operands have n elements or one; a result may share memory with an operand of n
// elements. Null: unsupported machine, or more live values than registers.
FlatCode CompileFlat(const JitBody& body, const std::vector<JitPort>& in, const std::vector<JitPort>& out);

// A loop over scalars. The first values are its inputs, of which the first `carry` are loop-carried.
struct JitWhile {
  JitBody body;                                         // the ops of the test, then of the body
  size_t test_ops = 0;                                  // number of ops in the test
  uint32_t go = 0;                                      // the test's result
  uint32_t given = 0;                                   // number of inputs, read from at[number]
  std::vector<uint32_t> next;                           // next[i]: the next value of carried value i
  std::vector<std::pair<uint32_t, uint64_t>> literals;  // constant values and their bits
};
// Runs until the test is false; then carried value i is in at[given + i]. Returns 1 if *cancelled became
// nonzero.
using WhileLoop = int(char* const* at, const volatile int32_t* cancelled);
std::shared_ptr<WhileLoop> CompileWhile(const JitWhile& loop);

}  // namespace keel_cpu
