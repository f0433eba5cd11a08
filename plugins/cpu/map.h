// map.h: a group of elementwise ops as one launch, the impl of `call`. prepare compiles the body to a
// program (map.cc); run interprets it a tile at a time, so that what lies between two ops stays in L1
// (map_run.cc). Each instruction is a loop of the op's own family: the bits are those of the ops alone.
#pragma once

#include <vector>

#include "binary_loops.h"
#include "common.h"
#include "select_loops.h"
#include "unary_loops.h"

namespace keel_cpu {

// A program's values live in slots, numbered: the call's operands, its results, then temporaries.
struct MapStep {
  enum Kind : uint8_t { kUnary, kBinary, kSelect, kClamp } kind;
  uint8_t n_in, size_out;
  uint16_t in[3], out;
  union {
    UnaryLoop unary;
    const BinaryLoop* binary;
    SelectLoop select;
    ClampLoop clamp;
  };
  const char* failure;  // of a binary loop that can fail
};

struct MapProgram {
  std::vector<MapStep> steps;
  std::vector<uint16_t> operands;  // those that are read
  std::vector<uint16_t> results;   // those that are written; all of one shape
  int temps = 0;
  int64_t tile = 0;  // elements: a slot of a tile has kSlotBytes at most
  int64_t cost = 0;  // of an element, for parallel.h
};

struct Map {
  uint16_t n_in = 0, n_out = 0;
  std::vector<uint8_t> sizes;  // bytes of an element of each operand and result
  MapProgram all;
  std::vector<MapProgram> single;  // for each result; used where their shapes differ
};

inline constexpr int kMapOperands = 32, kMapResults = 8, kMapTemps = 16;
inline constexpr int kMapSlots = kMapOperands + kMapResults + kMapTemps;
inline constexpr int64_t kSlotBytes = 4096;

keel_rc RunMap(const keel_call* call);

}  // namespace keel_cpu
