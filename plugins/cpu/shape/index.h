// index.h: checks indices given as data.
#pragma once

#include "plugins/cpu/common.h"
#include "plugins/cpu/parallel/parallel.h"

namespace keel_cpu {

inline void CheckIndex(int64_t i, int64_t n) {
  if (i < 0 || i >= n)
    Throw(KEEL_RANGE, "index " + std::to_string(i) + " is not in [0, " + std::to_string(n) + ")");
}

// Checks all `count` indices before any is used; throws if one is outside [0, n) or the run is cancelled.
template <class I>
void CheckAll(const keel_call* call, const I* index, int64_t count, int64_t n) {
  const bool all = InChunks(call, 0, count, 1, [&](int64_t begin, int64_t end) {
    bool bad = false;
    for (int64_t k = begin; k < end; k++) bad |= static_cast<uint64_t>(index[k]) >= static_cast<uint64_t>(n);
    for (int64_t k = begin; bad && k < end; k++) CheckIndex(index[k], n);
  });
  if (!all) throw Reported{KEEL_CANCELLED};
}

// Calls f.operator()<I>() with the type of the indices of operand i.
template <class F>
Run VisitIndex(const Node& node, uint32_t i, F&& f) {
  const keel_tensor t = node.In(i);
  if (keel_dt_of(&t) == KEEL_I64) return f.template operator()<int64_t>();
  if (keel_dt_of(&t) == KEEL_I32) return f.template operator()<int32_t>();
  Throw(KEEL_UNIMPLEMENTED,
        "indices have dtype code " + std::to_string(keel_dt_of(&t)) + "; expected i32 or i64");
}

// The element offset of the slice that a row of k indices into the first k dims refers to.
template <class I>
int64_t Locate(const I* row, const int64_t* dims, int64_t k, int64_t slice) {
  int64_t at = 0;
  for (int64_t d = 0; d < k; d++) {
    CheckIndex(row[d], dims[d]);
    at = at * dims[d] + row[d];
  }
  return at * slice;
}

}  // namespace keel_cpu
