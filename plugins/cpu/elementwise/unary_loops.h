// unary_loops.h: the loops of ops with one operand, as a table of function pointers.
#pragma once

#include <cstdint>

#include "abi/keel_plugin.h"

namespace keel_cpu {

using UnaryLoop = void (*)(const void* x, void* y, int64_t n);

struct UnaryOp {
  const char* op;
  keel_dt dtype;
  uint8_t size_in, size_out;  // bytes per element
  uint16_t cost;              // per element, see parallel/parallel.h
  UnaryLoop loop;
  UnaryLoop stream;  // the same, but stores past the caches; y begins a cache line. Null: none
};
struct UnaryTable {
  const UnaryOp* ops;
  int n;
};
const UnaryTable& Unary();

struct Node;
const UnaryOp* FindUnary(const Node&);  // by op, attributes and dtype; null: none

}  // namespace keel_cpu
