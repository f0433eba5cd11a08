// hand.cc: see hand.h. Multiplications and additions are not fused, so results are bit-identical to the ops.
#include "hand.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace map_bench {

void NineOps(const float* __restrict x, const float* __restrict w, const float* __restrict b,
             float* __restrict y, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const float t1 = x[i] * w[i] + b[i];
    const float t2 = -2.0f < t1 || t1 != t1 ? t1 : -2.0f;
    const float t3 = t2 - x[i];
    y[i] = std::fabs(t3 * t3 + w[i]) * 0.5f + x[i];
  }
}

namespace {

constexpr int64_t kLanes = 32, kTile = 1024, kDeep = 16;

float Joined(float* lanes) {
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t l = 0; l < half; l++) lanes[l] += lanes[l + half];
  return lanes[0];
}

// A tile of n elements, at most kTile, in whole lanes.
template <class F>
float Tile(int64_t n, F element) {
  float lanes[kLanes] = {};
  for (int64_t i = 0; i < n; i += kLanes)
    for (int64_t l = 0; l < kLanes; l++) lanes[l] += element(i + l);
  return Joined(lanes);
}

}  // namespace

void MeanOfSquares(const float* x, const float* y, float* out, int64_t rows, int64_t columns) {
  const int64_t n = rows * columns;
  double sum = 0;
  for (int64_t i = 0; i < n; i += kTile)
    sum += static_cast<double>(Tile(std::min(kTile, n - i), [&](int64_t k) {
      const float d = x[i + k] - y[i + k];
      return d * d;
    }));
  *out = static_cast<float>(sum / static_cast<double>(n));
}

void RowSums(const float* x, const float* y, float* out, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; r++, x += columns, y += columns)
    out[r] = Tile(columns, [&](int64_t k) { return x[k] * y[k]; });
}

void ColumnSums(const float* x, const float* y, float* __restrict out, int64_t rows, int64_t columns) {
  constexpr int64_t kMost = 256;  // columns
  double sums[kMost] = {};
  for (int64_t r = 0; r < rows; r += kDeep, x += kDeep * columns, y += kDeep * columns)
    for (int64_t c = 0; c < columns; c++) {
      float sum = 0;
      for (int64_t d = 0; d < kDeep; d++) sum += x[d * columns + c] * y[d * columns + c];
      sums[c] += static_cast<double>(sum);
    }
  for (int64_t c = 0; c < columns; c++) out[c] = static_cast<float>(sums[c]);
}

void MaxOfAbs(const float* x, const float*, float* out, int64_t rows, int64_t columns) {
  float lanes[kLanes];
  std::fill(lanes, lanes + kLanes, -std::numeric_limits<float>::infinity());
  for (int64_t i = 0; i < rows * columns; i += kLanes)
    for (int64_t l = 0; l < kLanes; l++) {
      const float a = std::fabs(x[i + l]);
      lanes[l] = a > lanes[l] || a != a ? a : lanes[l];
    }
  *out = *std::max_element(lanes, lanes + kLanes);
}

}  // namespace map_bench
