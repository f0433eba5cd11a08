// net.h: a recurrent net as it runs: packed weights, programs and the places of values. Units are in blocks,
// and rows in tiles: the sums of a block and all values of its ops stay in the first-level cache.
//
// A kept value is in the scratch memory in blocks, [tile][block][rows][units of the block], so that maps see
// it flat; a product's left operand is there once more as rows. Both twice, by turns of steps: a carried
// value is the kept one of the step before.
#pragma once

#include <algorithm>

#include "plugins/cpu/map/map.h"
#include "plugins/cpu/matmul/loops.h"
#include "plugins/cpu/onednn/onednn.h"
#include "plugins/cpu/recurrent/form.h"
#include "plugins/cpu/recurrent/loops.h"

namespace keel_cpu {

// Where elements come from.
struct StepSource {
  enum Kind : uint8_t { kSum, kBefore, kNow, kOutside, kPacked } kind;
  uint32_t number = 0;  // of the stage's sum; of the kept value; of the scan's operand; of the packed operand
  const char* data = nullptr;              // kOutside: of a constant
  int64_t row = 0, column = 0;             // steps in elements; kOutside
  int64_t first = 0, entry = 0, size = 0;  // bytes: to the first one; from one step's to the next; an element
};

struct NetPart {
  StepSource left;  // its rows
  int64_t depth, panel_bytes;
  int64_t share;          // values of depth that a step makes of the next steps' products
  bool is_joint = false;  // the left operand begins with KeptValue::front
};
// Products with entries need not wait for their step: with few rows they are made for several steps at once
// (Net::ahead), in two places by turns, [block][steps][rows][units of the block].
struct NetSum {
  std::vector<NetPart> ahead, parts;  // of several steps; of this one
  std::vector<StepSource> starts;     // [rows, units], or rows that are the same
  uint64_t start = 0;                 // the place of their sum
  int64_t start_row = 0;              // elements from one of its rows to the next, or 0
  int64_t panel_bytes = 0;            // of all parts
  uint64_t made[2] = {};              // places of the first in the scratch memory
};
struct NetStage {
  std::vector<NetSum> sums;
  std::vector<uint64_t> panels;  // by block of units: where its panels begin, in the order of sums and parts
  int64_t panel_bytes = 0;       // of all sums
  Map map;
  const MapCode* code = nullptr;
  uint32_t ones = 0;
  std::vector<StepSource> operands;
  std::vector<uint32_t> results;  // kept values
  int64_t cost = 0;               // of a row of a block
};

struct KeptValue {
  int64_t size = 0;
  bool is_left = false;
  // The step's entry is in front of the rows, so that products with both are one.
  StepSource front = {};
  int64_t front_depth = 0, width = 0;     // elements: of the entry, from one row to the next
  std::vector<uint32_t> outs;             // results of the scan that stack it
  uint64_t blocks[2] = {}, rows[2] = {};  // places in the scratch memory
};
// An operand that all steps read, in blocks.
struct PackedOperand {
  StepSource from;
  uint64_t at;
};

struct Net {
  const MatmulOp* op = nullptr;
  int64_t rows = 0, units = 0, steps = 0;
  int64_t tile = 0, block = 0;  // rows of a tile, units of a block
  int64_t ahead = 1;            // steps
  PairLoop pair = {};           // makes them meanwhile
  bool reverse = false;
  std::vector<NetStage> stages;
  std::vector<KeptValue> kept;
  std::vector<uint32_t> carried;  // by carried value: the kept one
  std::vector<PackedOperand> packed;
  Bytes weights;

  int64_t Blocks() const { return (units + block - 1) / block; }
  int64_t Tiles() const { return (rows + tile - 1) / tile; }
};

// Products with entries are made for several steps at once, unless a step has so many rows.
inline constexpr int64_t kManyRows = 8;
inline constexpr size_t kMostSums = 8;
inline constexpr int64_t kMostElements = 1024;  // of a tile's block

keel_rc PrepareNet(const Node& node, keel_launch* launch);
keel_rc RunNet(const keel_call* call);

}  // namespace keel_cpu
