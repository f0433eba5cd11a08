// attention_state.h: the state of a launch of attention: its numbers, where rows are, and the parts of its
// workspace, one after the other: packed heads, a lane for each thread, joined keys and values, flags.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "plugins/cpu/common.h"
#include "plugins/cpu/matmul/hidden_columns.h"
#include "plugins/cpu/matmul/loops.h"
#include "plugins/cpu/norm/loops.h"

namespace keel_cpu {

// The rows of heads in an operand; distances in elements. Heads are in groups, of one if all rows of a head
// are together.
struct HeadRows {
  int operand = 0;
  int64_t rows = 0, columns = 0;  // of a head
  int64_t row = 0, step = 0, group = 1, group_step = 0;

  HeadRows() = default;
  HeadRows(int operand, bool turned, int64_t heads, int64_t rows, int64_t columns)
      : operand(operand),
        rows(rows),
        columns(columns),
        row(turned ? heads * columns : columns),
        step(columns),
        group(turned ? heads : 1),
        group_step(group * rows * columns) {}
  int64_t At(int64_t head) const { return head / group * group_step + head % group * step; }
  bool AreTogether() const { return row == columns; }
};

// Keys or values.
struct JoinedRows {
  std::vector<HeadRows> parts;

  // f(part, number of its first row)
  template <class F>
  void EachPart(F f) const {
    int64_t first = 0;
    for (const HeadRows& part : parts) f(part, std::exchange(first, first + part.rows));
  }
};

struct Attention {
  const MatmulOp* multiply;
  const NormOp* norm;
  HeadRows q, y;
  JoinedRows k, v;
  int mask = -1;  // the operand; -1: none
  int64_t heads = 1, l = 0, s = 0, d = 0, e = 0;
  double scale = 1;
  bool causal = false, zero_nan = false;
  bool in_place = false;  // k and v are not packed
  bool fetches = false;   // rows of k and v that are next, or of the next head, are fetched meanwhile
  int64_t mask_row = 0, mask_column = 0;  // steps in elements
  std::vector<int64_t> mask_start;        // per head
  std::optional<HiddenColumns> hidden;    // by the mask, if it is a constant
  int threads = 1;                        // number of threads that the workspace is for
  int64_t together = 1;                   // heads that are packed before their blocks are computed

  static int64_t Aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }
  int64_t PanelBytes(int64_t depth) const { return Aligned(depth * multiply->panel * multiply->packed_size); }
  int64_t PanelsOfHead() const { return multiply->Panels(s) + multiply->Panels(e); }
  int64_t HeadBytes() const {
    return in_place ? 0 : multiply->Panels(s) * PanelBytes(d) + multiply->Panels(e) * PanelBytes(s);
  }
  const char* Of(const keel_call* call, const HeadRows& rows, int64_t head) const {
    return In<char>(call, rows.operand) + rows.At(head) * multiply->size;
  }
  // So many heads in a row are packed and computed by one thread; 0: threads share heads, as it would leave
  // some of them idle.
  int64_t HeadsEach(const keel_call* call) const {
    constexpr int64_t kMany = 16;  // for a thread: one more does not matter
    const int64_t lanes = std::min<int64_t>(threads, call->env->threads);
    return !in_place && (heads % lanes == 0 || heads >= kMany * lanes) ? (heads + lanes - 1) / lanes : 0;
  }
  // The place of a head in the workspace.
  int64_t Slot(const keel_call* call, int64_t head) const {
    const int64_t each = HeadsEach(call);
    return each > 0 ? head / each : head % together;
  }
  char* PackedHead(const keel_call* call, int64_t head) const {
    return static_cast<char*>(call->scratch) + Slot(call, head) * HeadBytes();
  }
  int64_t Block() const { return hidden || causal ? kRows : kMoreRows; }
  int64_t BlockRows() const { return std::min(Block(), l); }
  int64_t ScoreBytes() const { return Aligned(BlockRows() * s * multiply->size); }
  int64_t SumBytes() const { return Aligned(BlockRows() * e * multiply->size); }
  char* ScoresOf(const keel_call* call, int64_t lane) const {
    return static_cast<char*>(call->scratch) + together * HeadBytes() + lane * LaneBytes();
  }
  int64_t LaneBytes() const { return ScoreBytes() + (in_place ? 2 * SumBytes() : 0); }
  int64_t LanesEnd() const { return together * HeadBytes() + threads * LaneBytes(); }

  // Rows that are packed are joined first, if they have parts.
  int64_t JoinedBytes(const JoinedRows& rows) const {
    return in_place || rows.parts.size() == 1 ? 0
                                              : Aligned(heads * s * rows.parts[0].columns * multiply->size);
  }
  char* Joined(const keel_call* call, const JoinedRows& rows) const {
    return static_cast<char*>(call->scratch) + LanesEnd() + (&rows == &v ? JoinedBytes(k) : 0);
  }
  // All rows of a head, of a launch that packs them; `row` is their distance.
  const char* Whole(const keel_call* call, const JoinedRows& rows, int64_t head, int64_t* row) const {
    const HeadRows& part = rows.parts[0];
    *row = rows.parts.size() == 1 ? part.row : part.columns;
    if (rows.parts.size() == 1) return Of(call, part, head);
    return Joined(call, rows) + head * s * part.columns * multiply->size;
  }
  // Of each head of those at once: whether it leaves out hidden columns.
  char* Hides(const keel_call* call) const { return Joined(call, v) + JoinedBytes(v); }
  int64_t WorkspaceBytes() const {
    return LanesEnd() + JoinedBytes(k) + JoinedBytes(v) + (hidden ? together : 0);
  }

  // Heads at once: packed k and v stay in the second-level cache, and each thread has some.
  int64_t Together() const {
    constexpr int64_t kPacked = 1 << 19;  // bytes for a thread
    return std::clamp<int64_t>(threads * std::max<int64_t>(1, kPacked / std::max<int64_t>(HeadBytes(), 1)), 1,
                               std::max<int64_t>(heads, 1));
  }
  // Rows per block: fewer where they see different columns (with 48 a causal attention of 1x12x128x64
  // took 1.07 of the time); 64 of 128 are no more than the kernel's blocks of 6 and 4 rows.
  static constexpr int64_t kRows = 24, kMoreRows = 64;
  // Products of a head, which takes about a millisecond: only between heads it is seen whether to stop.
  static constexpr int64_t kMostInPlace = 1 << 23;
  static constexpr int64_t kFetched = 4096;  // bytes of keys at a time
};

keel_rc RunAttention(const keel_call* call);

}  // namespace keel_cpu
