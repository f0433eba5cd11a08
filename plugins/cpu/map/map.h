// map.h: a group of elementwise ops as one launch, an impl of `call`. prepare compiles the body to a program
// (compile.cc); run interprets it tile by tile, so that intermediate values stay in L1 (tiles.h, run.cc). An
// instruction is the op's own loop, or machine code for several ops (jit/jit.h); the bits equal those of the
// ops alone. reduce.cc adds a trailing reduction.
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

// Values of a program are in numbered slots: the call's operands, its results, then temporaries.
struct MapStep {
  enum Kind : uint8_t { kUnary, kBinary, kSelect, kClamp, kFused } kind;
  uint8_t n_in, size_out;
  uint16_t in[3], out;
  union {
    UnaryLoop unary;
    const BinaryLoop* binary;
    SelectLoop select;
    ClampLoop clamp;
    FlatLoop* fused;  // bound to the slots that it was compiled for
  };
  const char* failure;  // message of a binary loop that can fail
  uint64_t writes;      // kFused: a bit per slot that it writes
  bool CanFail() const { return kind != kFused && failure; }
};

struct MapCode {
  std::vector<MapStep> steps;
  int temps = 0;
  int64_t tile = 0;  // elements; a slot of a tile has at most kSlotBytes
  int64_t cost = 0;  // per element, see parallel/parallel.h
};
// Steps specialised for operands with one element, in total or per row.
struct MapFused {
  uint32_t ones = 0;  // a bit per such operand
  MapCode code;
  std::vector<FlatCode> kept;
};
struct MapProgram {
  std::vector<uint16_t> operands;  // operands that are read
  std::vector<uint16_t> results;   // results that are written; all of one shape
  MapCode plain;                   // for any operands
  std::vector<MapFused> fused;
};

inline constexpr int kMapOperands = 32, kMapResults = 8, kMapTemps = 16;

// A program without layout work: known dims, no broadcast within rows, a single tile, no step that can fail.
// In a large graph a launch costs the cache lines it reads: this struct is one or two, layout and programs
// are a dozen dependent ones (6 to 1.5 ns per node of 1,000 elements, 27 to 3.5 of 100,000:
// tools/bench/growth.py, wide). One-element constants are copied into it for the same reason.
struct SingleTileMap {
  FlatLoop* code = nullptr;                           // set if the whole program is one function
  std::shared_ptr<const std::vector<MapStep>> steps;  // otherwise; if both are null the general path runs
  uint32_t ones = 0;                                  // a bit per operand that has one element in `steps`
  uint32_t known = 0;                                 // a bit per operand that is copied into `elements`
  uint64_t elements[kMapOperands];
};

// Returns shared steps for equal ones. The programs own the machine code that the steps call. Thread-safe.
std::shared_ptr<const std::vector<MapStep>> SharedSteps(const std::vector<MapStep>& steps);

struct Map {
  SingleTileMap whole;
  uint16_t n_in = 0, n_out = 0;  // operands of the call; results
  std::vector<uint8_t> sizes;    // element size in bytes of each operand and result
  MapProgram all;
  std::vector<MapProgram> single;  // one per result; used if their shapes differ
};

inline constexpr int kMapSlots = kMapOperands + kMapResults + kMapTemps;
inline constexpr int64_t kSlotBytes = 4096;
inline constexpr int64_t kWholeTile = 8192;  // elements; applies if all temporaries have one element

// The nodes to compile (the first nodes of a body), and the values to produce.
struct MapBody {
  struct Output {
    uint32_t value;
    keel_tensor type;
  };
  const keel_host* host;
  std::vector<keel_tensor> operands;  // the first values of the body
  const keel_body* body;
  uint32_t n_nodes;
  std::vector<Output> outputs;
};
std::vector<keel_tensor> OperandsOf(const Node& call);
bool FitsMap(const MapBody&);  // whether it can be compiled
std::optional<Map> CompileMap(const MapBody&);

keel_rc RunMap(const keel_call* call);

}  // namespace keel_cpu
