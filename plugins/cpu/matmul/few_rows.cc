// few_rows.cc: products of a few rows, bound by reading b: by its packed panels if it is constant, else in
// place.
#include <algorithm>

#include "plugins/cpu/matmul/own_matmul.h"
#include "plugins/cpu/parallel/parallel.h"
#include "plugins/cpu/simd/simd.h"

namespace keel_cpu {
namespace {

// Panels of constant matrices by the same few rows; a loop may compute many products: the general way to
// find a panel's operands would take a tenth of the time of 1x128x512.
void MultiplyPanels(const OwnMatmul& w, const char* a, int64_t begin, int64_t end, bool backward, char* c) {
  const MatmulShape& s = w.s;
  const Matrix x = {a, s.ta ? 1 : s.k, s.ta ? s.m : 1};
  const int64_t bytes = w.PanelBytes(), step = backward ? -1 : 1, panels = w.Panels();
  if (const int64_t full = std::min(end, w.PanelsOfRow()) - begin; full > 0) {
    const int64_t first = backward ? begin + full - 1 : begin;
    w.op->multiply_row(x, w.constant.get() + first * bytes, step * bytes, full, s.k, nullptr,
                       c + first * w.op->panel * w.op->size);
    begin += full;
  }
  int64_t p = backward ? end - 1 : begin;
  for (int64_t left = end - begin; left > 0; left--, p += step) {
    const char* panel = w.constant.get() + p * bytes;
    const Next next = {panel + step * bytes, left > 1 ? bytes : 0};
    const int64_t matrix = s.b_matrices == 1 ? 0 : p / panels;
    w.op->multiply(x, {panel, w.op->panel, next}, s.m, s.n, s.k, p - matrix * panels, false,
                   c + matrix * s.m * s.n * w.op->size);
  }
}

// A backward walk through panels that come from memory goes forward within runs of them, since the processor
// fetches the lines that follow: panel by panel it took 1.2 of the time (a decoder's weights, Zen 4).
void MultiplyBackward(const OwnMatmul& w, const char* a, int64_t begin, int64_t end, char* c) {
  const int64_t cache = SecondLevelCache(), bytes = w.PanelBytes();
  if (w.s.b_matrices * w.Panels() * bytes <= 4 * cache) return MultiplyPanels(w, a, begin, end, true, c);
  const int64_t run = std::max<int64_t>(1, cache / bytes);
  for (int64_t last = end; last > begin; last -= run)
    MultiplyPanels(w, a, std::max(begin, last - run), last, false, c);
}

}  // namespace

keel_rc RunFewRows(const keel_call* call, const OwnMatmul& w, const char* a) {
  const MatmulShape& s = w.s;
  const bool backward = w.turns.Backward();
  ParallelFor(call, s.b_matrices * w.Panels(), s.m * s.k * w.op->panel / 16, [&](int64_t begin, int64_t end) {
    if (backward)
      MultiplyBackward(w, a, begin, end, Out<char>(call, 0));
    else
      MultiplyPanels(w, a, begin, end, false, Out<char>(call, 0));
  });
  return Done(call);
}

// A few rows by b in place, by blocks of columns. Threads share the columns in units, which rows of b would
// reach too often if they were the blocks.
keel_rc RunInPlace(const keel_call* call, const OwnMatmul& w, const char* a) {
  // sums of a block of columns, which stay in the first-level cache
  constexpr int64_t kStreamed = 4096, kUnit = 64;
  const MatmulShape& s = w.s;
  const int64_t most = kStreamed / s.m / kUnit * kUnit, units = (s.n + kUnit - 1) / kUnit;
  const int64_t size = w.op->size, left_size = w.op->left_size, column = s.tb ? s.k : 1,
                step = s.tb ? s.k : s.n;
  ParallelFor(call, s.Batches() * units, s.m * s.k * kUnit / 16, [&](int64_t begin, int64_t end) {
    const Bytes work = s.tb ? nullptr : Allocate(static_cast<size_t>(s.m * most * left_size));
    for (int64_t u = begin; u < end;) {
      const int64_t batch = u / units, first = u % units * kUnit;
      const int64_t last = std::min({s.n, first + most, first + (end - u) * kUnit});
      s.batch.Rows(batch, batch + 1, [&](int64_t, const int64_t* at) {
        const Matrix x = {a + at[0] * left_size, s.ta ? 1 : s.k, s.ta ? s.m : 1};
        w.in_place(x, In<char>(call, 1) + (at[1] + first * column) * size, step, s.m, last - first, s.n, s.k,
                   work.get(), Out<char>(call, 0) + (batch * s.m * s.n + first) * size);
      });
      u += (last - first + kUnit - 1) / kUnit;
    }
  });
  return Done(call);
}

}  // namespace keel_cpu
