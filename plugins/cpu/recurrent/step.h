// step.h: where the values of a step are, and the areas that tasks compute.
#pragma once

#include "plugins/cpu/recurrent/net.h"

namespace keel_cpu {

// The rows of a tile and the units of a block. With pairs, the first panel of the next steps' products and
// its share, at which this step goes on; divisions would take a tenth of a step of 64 units.
struct Area {
  int64_t row, rows, unit, units;
  int64_t block, panels;
  bool is_full;  // all panels
  int64_t other, share;
};

struct NetStep {
  NetStep(const keel_call* call, const Net& net)
      : call(call),
        net(net),
        scratch(static_cast<char*>(call->scratch)),
        tiles(net.Tiles()),
        areas(tiles * net.Blocks()) {}
  void Go(int64_t to) {
    step = to, now = static_cast<int>(step & 1);
    entry = net.reverse ? net.steps - 1 - step : step;
    group = step / net.ahead, in_group = step - group * net.ahead;
  }
  // Blocks of units are the outer loop, as their panels are large.
  Area AreaOf(int64_t u) const {
    const int64_t block = tiles == 1 ? u : u / tiles;
    const int64_t row = (u - block * tiles) * net.tile, unit = block * net.block;
    Area a = {row,   std::min(net.tile, net.rows - row),
              unit,  std::min(net.block, net.units - unit),
              block, 0,
              false, 0,
              0};
    a.panels = net.op->Panels(a.units), a.is_full = a.panels * net.op->panel == a.units;
    a.other = in_group * a.panels / net.ahead, a.share = in_group * a.panels - a.other * net.ahead;
    return a;
  }
  // Each second step finds the panels in a cache that the step before read last.
  bool IsBackward() const { return now == 1; }
  int64_t InBlocks(const Area& a) const { return a.row * net.units + a.rows * a.unit; }
  const char* Outside(const StepSource& s) const {
    const char* base = s.data != nullptr ? s.data : In<char>(call, static_cast<int>(s.number));
    return base + s.first + s.entry * entry;
  }
  char* BlockOf(const KeptValue& v, int turn, const Area& a) const {
    return scratch + v.blocks[turn] + InBlocks(a) * v.size;
  }
  // A row of a value as a left operand.
  char* RowOf(const KeptValue& v, int turn, int64_t row) const {
    if (net.rows == 1) return scratch + v.blocks[turn];
    return scratch + v.rows[turn] + (row * v.width + v.front_depth) * v.size;
  }

  const keel_call* call;
  const Net& net;
  char* scratch;
  const int64_t tiles, areas;
  int64_t step = 0, entry = 0;      // of the operands and results
  int now = 0;                      // of two places by turns
  int64_t group = 0, in_group = 0;  // of steps whose products with entries are made at once
};

// Rows of a block are short: a call of memcpy for each would take longer than the copy.
inline void CopyRows(const char* from, int64_t from_step, char* to, int64_t to_step, int64_t rows,
                     int64_t bytes) {
  WithUsual<128>(bytes, [&](auto n) {
    for (int64_t r = 0; r < rows; r++)
      __builtin_memcpy(to + r * to_step, from + r * from_step, static_cast<size_t>(n));
  });
}

// The sums of an area, each [rows][units], kMostElements apart.
void AddSums(const NetStep& step, const NetStage& stage, const Area& a, float* to);

}  // namespace keel_cpu
