// binary_loops.h: the loops of ops with two operands, as tables of function pointers.
#pragma once

#include <cstdint>

#include "abi/keel_plugin.h"

namespace keel_cpu {

// c[i] = op(a[i], b[i]) for n elements. Returns -1, or the index of the first element outside the op's domain
// (a zero divisor); then nothing is written.
using BinaryLoop = int64_t (*)(const void* a, const void* b, void* c, int64_t n);

struct BinaryOp {
  keel_dt dtype;
  uint8_t size_in, size_out;  // per element, see parallel/parallel.h
  uint16_t cost;              // per element, see parallel/parallel.h
  BinaryLoop loops[3];        // both vary; a has one element; b has one element
  BinaryLoop streams[3];      // the same, but stored past the caches; c begins a cache line. Null: none
  const char* failure;        // the op's `fails` text in the catalogue; null: cannot fail
};
struct BinaryFamily {
  const char* op;
  const BinaryOp* dtypes;
  int n;
};
struct BinaryTable {
  const BinaryFamily* families;
  int n;
};
const BinaryTable& Arithmetic();   // arith_loops.inc
const BinaryTable& Comparisons();  // compare_loops.inc

const BinaryOp* FindBinary(const char* op, keel_dt);  // from either table, or null

}  // namespace keel_cpu
