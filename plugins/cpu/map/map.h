// map.h: a group of elementwise ops as one launch, the impl of `call`. prepare compiles the body to a
// program (compile.cc); run interprets it a tile at a time, so that what lies between two ops stays in L1
// (tiles.h, run.cc). Each instruction is a loop of the op's own family, or of several ops for which
// there is machine code (jit/jit.h): the bits are those of the ops alone. reduce.cc runs one with a reduction
// behind it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "plugins/cpu/common.h"
#include "plugins/cpu/elementwise/binary_loops.h"
#include "plugins/cpu/elementwise/select_loops.h"
#include "plugins/cpu/elementwise/unary_loops.h"
#include "plugins/cpu/jit/jit.h"

namespace keel_cpu {

// A program's values live in slots, numbered: the call's operands, its results, then temporaries.
struct MapStep {
  enum Kind : uint8_t { kUnary, kBinary, kSelect, kClamp, kFused } kind;
  uint8_t n_in, size_out;
  uint16_t in[3], out;
  union {
    UnaryLoop unary;
    const BinaryLoop* binary;
    SelectLoop select;
    ClampLoop clamp;
    FlatLoop* fused;  // reads and writes the slots that it was made for
  };
  const char* failure;  // of a binary loop that can fail
  uint64_t writes;      // of fused: a bit for each slot
};

struct MapCode {
  std::vector<MapStep> steps;
  int temps = 0;
  int64_t tile = 0;  // elements: a slot of a tile has kSlotBytes at most
  int64_t cost = 0;  // of an element, for parallel/parallel.h
};
// Steps for operands of which exactly these have one element, in all or in a row.
struct MapFused {
  uint32_t ones = 0;  // a bit for each operand
  MapCode code;
  std::vector<FlatCode> kept;
};
struct MapProgram {
  std::vector<uint16_t> operands;  // those that are read
  std::vector<uint16_t> results;   // those that are written; all of one shape
  MapCode plain;                   // for all operands
  std::vector<MapFused> fused;
};

inline constexpr int kMapOperands = 32, kMapResults = 8, kMapTemps = 16;

// What needs no layout: where dims are known, no operand is spread, all is one tile and no step can fail. In
// a large graph a launch costs what it reads, and this is a line or two, where layout and programs are a
// dozen that hang on each other (6 to 1.5 ns for a node of 1,000, 27 to 3.5 of 100,000:
// tools/bench/growth.py, wide); constants of one element are copied here, for each lies in a line of its own.
struct MapWhole {
  FlatLoop* code = nullptr;                           // the whole program, if it is one function
  std::shared_ptr<const std::vector<MapStep>> steps;  // else; neither: there is more to do
  uint32_t ones = 0;                                  // bits for operands: that have one element in steps,
  uint32_t known = 0;                                 // that are copied
  uint64_t elements[kMapOperands];
};

// The same for equal steps, for as long as somebody keeps it. What machine code they call is kept by the
// programs that they are of. From any thread.
std::shared_ptr<const std::vector<MapStep>> SharedSteps(const std::vector<MapStep>& steps);

struct Map {
  MapWhole whole;
  uint16_t n_in = 0, n_out = 0;  // of the call; what is made
  std::vector<uint8_t> sizes;    // bytes of an element of each operand and result
  MapProgram all;
  std::vector<MapProgram> single;  // for each result; used where their shapes differ
};

inline constexpr int kMapSlots = kMapOperands + kMapResults + kMapTemps;
inline constexpr int64_t kSlotBytes = 4096;
inline constexpr int64_t kWholeTile = 8192;  // elements, where no temporary has more than one

// What is to be compiled: the first nodes of a call's body, and the values that they are to make.
struct MapBody {
  struct Made {
    uint32_t value;
    keel_tensor type;
  };
  Node call;
  const keel_body* body;
  uint32_t n_nodes;
  std::vector<Made> made;
};
bool FitsMap(const MapBody&);  // can it be compiled?
std::optional<Map> CompileMap(const MapBody&);

keel_rc RunMap(const keel_call* call);

}  // namespace keel_cpu
