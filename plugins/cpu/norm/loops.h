// loops.h: row functions of the normalisations (softmax, layer_norm ...), as tables of function pointers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "abi/keel_plugin.h"

namespace keel_cpu {

// The run's cancellation flag, checked between pieces of a row: nonzero means that the rest may be skipped.
using StopFlagOf = const volatile int32_t*;

// Rows of scores, `apart` elements from one to the next. The first one's softmax is of n elements, and of
// `more` further ones for each row after it, at most `room`; the others up to `room` become 0.
struct ScoreRows {
  int64_t rows, n, more, room, apart;
  int64_t Count(int64_t r) const { return std::min(n + r * more, room); }
  ScoreRows From(int64_t r, int64_t most) const {  // up to `most` of them
    return {std::min(most, rows - r), Count(r), more, room, apart};
  }
};

struct NormOp {
  keel_dt dtype;
  uint8_t size;  // bytes per element
  // y = softmax or log_softmax of each row of x[rows, n]
  void (*softmax)(const void* x, int64_t rows, int64_t n, void* y, StopFlagOf stop);
  void (*log_softmax)(const void* x, int64_t rows, int64_t n, void* y, StopFlagOf stop);
  // the same along the rows of x[n, stride], for the first `columns` columns, at most kColumns
  void (*softmax_columns)(const void* x, int64_t n, int64_t stride, int64_t columns, void* y,
                          StopFlagOf stop);
  void (*log_softmax_columns)(const void* x, int64_t n, int64_t stride, int64_t columns, void* y,
                              StopFlagOf stop);
  // x = softmax(x * scale + mask) in place. mask: null or for each row, `mask_row` elements apart, as many
  // elements, a single one if mask_step is 0.
  void (*masked_softmax)(void* x, const ScoreRows& of, double scale, const void* mask, int64_t mask_row,
                         int64_t mask_step, StopFlagOf stop);
  // The largest magnitude of rows of n elements, `step` apart: infinity or NaN if one of them is. Null for
  // 16-bit floats.
  double (*magnitude)(const void* x, int64_t rows, int64_t n, int64_t step);
  // y = (x - mean) / sqrt(variance + eps) * g + b; rms_norm: without mean and b
  void (*layer_norm)(const void* x, const void* g, const void* b, int64_t n, double eps, void* y,
                     StopFlagOf stop);
  void (*rms_norm)(const void* x, const void* g, const void* b, int64_t n, double eps, void* y,
                   StopFlagOf stop);
  // y = x * k + h with k = g / sqrt(var + eps), h = b - mean * k of channel c
  using BatchNorm = void (*)(const void* x, const void* const* channels, int64_t c, int64_t n, double eps,
                             void* y);
  BatchNorm batch_norm;
  BatchNorm batch_norm_stream;  // the same, but stores past the caches; y begins a cache line. Null: none
};
inline constexpr int64_t kColumns = 256;

struct NormTable {
  const NormOp* dtypes;
  int n;
};
const NormTable& Norms();

}  // namespace keel_cpu
