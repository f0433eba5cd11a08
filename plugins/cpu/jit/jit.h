// jit.h: machine code for a run of elementwise ops, so that what lies between two ops stays in registers.
//
// How it is meant to be read: a JitBody lists values by dtype and ops on them, in order. FindJit says which
// ops can be in one; CompileFlat makes a function over arrays of it. ops.cc has a row for each op,
// assembler.h the registers, flat.cc the loop, memory.cc where code lies. The bits are those of
// the ops' own loops: nothing is fused into one rounding. It needs AVX-512 and memory that may be executed;
// without, everything here says no, and the callers interpret.
#pragma once

#include <memory>
#include <vector>

#include "abi/keel_plugin.h"

namespace keel_cpu {

struct JitRow;  // how one op is emitted for some dtypes

// Null: there is no code for this op with these dtypes.
const JitRow* FindJit(const char* op, const keel_dt* in, keel_dt out);

bool HasRegisters(keel_dt);  // may values of this dtype be in a JitBody?

struct JitOp {
  const JitRow* row;  // null, where a function does it: only in loops over scalars
  uint32_t in[3];     // values
  uint32_t out;
  uint8_t n_in;
  const void* function = nullptr;  // UnaryLoop or BinaryLoop, by n_in
};
struct JitBody {
  std::vector<keel_dt> values;
  std::vector<JitOp> ops;
};

// Where an operand or result of a flat program lies: in at[slot].
struct JitPort {
  uint32_t value;
  uint16_t slot;
  bool one;  // it has one element, for all places
};
using FlatLoop = void(char* const* at, int64_t n);
using FlatCode = std::shared_ptr<FlatLoop>;

// All ops on n elements, of operands that have n or one; a result may lie where an operand of n elements
// does. Null: not on this machine, or more values alive at once than there are registers.
FlatCode CompileFlat(const JitBody& body, const std::vector<JitPort>& in, const std::vector<JitPort>& out);

// A loop over scalars. Its values begin with what it is given, of which the first `carry` are carried.
struct JitWhile {
  JitBody body;                                         // the ops of the test, then those of the body
  size_t test_ops = 0;                                  // so many are the test's
  uint32_t go = 0;                                      // the test's result
  uint32_t given = 0;                                   // values that are in at[number]
  std::vector<uint32_t> next;                           // what is carried on, by carry
  std::vector<std::pair<uint32_t, uint64_t>> literals;  // values that are constants, and their bits
};
// Runs until the test is false; then carried value i is in at[given + i]. 1: stopped, as *cancelled was not
// 0.
using WhileLoop = int(char* const* at, const volatile int32_t* cancelled);
std::shared_ptr<WhileLoop> CompileWhile(const JitWhile& loop);

}  // namespace keel_cpu
