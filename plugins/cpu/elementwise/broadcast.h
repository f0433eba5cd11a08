// broadcast.h: traverses operands that broadcast to a common shape. Adjacent dims that all operands traverse
// alike are merged first, so that most cases become one flat run (equal shapes), two dims (a row or column
// and a matrix) or three. The innermost dim is a loop over elements, the others are an odometer.
#pragma once

#include "plugins/cpu/common.h"

namespace keel_cpu {

template <int kOperands>
struct Walk {
  int rank = 0;  // of the merged dims; dim rank-1 is the innermost
  int64_t dims[KEEL_MAX_RANK];
  int64_t steps[kOperands][KEEL_MAX_RANK];  // in elements; 0 if the operand broadcasts along the dim

  int64_t Inner() const { return rank == 0 ? 1 : dims[rank - 1]; }
  int64_t Rows() const { return Product(dims, rank > 0 ? rank - 1 : 0); }
  int64_t InnerStep(int operand) const { return rank == 0 ? 1 : steps[operand][rank - 1]; }

  // Calls f(row, offsets) for rows [begin, end) of the outer dims; offsets in elements, per operand.
  template <class F>
  void Rows(int64_t begin, int64_t end, F&& f) const {
    int64_t index[KEEL_MAX_RANK] = {}, at[kOperands] = {};
    const int outer = rank > 0 ? rank - 1 : 0;
    for (int64_t d = outer - 1, rest = begin; d >= 0; d--) {
      index[d] = rest % dims[d];
      rest /= dims[d];
      for (int i = 0; i < kOperands; i++) at[i] += index[d] * steps[i][d];
    }
    for (int64_t row = begin; row < end; row++) {
      f(row, static_cast<const int64_t*>(at));
      for (int d = outer - 1; d >= 0; d--) {
        for (int i = 0; i < kOperands; i++) at[i] += steps[i][d];
        if (++index[d] < dims[d]) break;
        for (int i = 0; i < kOperands; i++) at[i] -= steps[i][d] * dims[d];
        index[d] = 0;
      }
    }
  }
  // Calls f(offsets, n) for them, n at a time, which differ in the last of the outer dims only.
  template <class F>
  void Runs(int64_t begin, int64_t end, F&& f) const {
    const int64_t each = rank > 1 ? dims[rank - 2] : 1;
    while (begin < end) {
      const int64_t n = std::min(each - begin % each, end - begin);
      Rows(begin, begin + 1, [&](int64_t, const int64_t* at) { f(at, n); });
      begin += n;
    }
  }
};

// Appends a dim, merged with the previous one if every operand allows it.
template <int kOperands>
void AppendDim(Walk<kOperands>* w, int64_t dim, const int64_t (&steps)[kOperands]) {
  if (dim == 1) return;
  const int last = w->rank - 1;
  bool merge = last >= 0;
  for (int i = 0; merge && i < kOperands; i++) merge = w->steps[i][last] == steps[i] * dim;
  const int at = merge ? last : w->rank++;
  w->dims[at] = merge ? w->dims[at] * dim : dim;
  for (int i = 0; i < kOperands; i++) w->steps[i][at] = steps[i];
}

// The walk of operands 0..kOperands-1 of a call over result 0; shapes align at the last dim.
template <int kOperands>
Walk<kOperands> Broadcast(const keel_call* c) {
  const keel_tensor& out = *c->out[0];
  int64_t strides[kOperands][KEEL_MAX_RANK] = {};
  for (int i = 0; i < kOperands; i++) {
    const keel_tensor& t = *c->in[i];
    int64_t step = 1;
    for (int d = t.ndim - 1; d >= 0; d--) {
      strides[i][d + out.ndim - t.ndim] = t.shape[d] == 1 ? 0 : step;
      step *= t.shape[d];
    }
  }
  Walk<kOperands> w;
  for (int d = 0; d < out.ndim; d++) {
    int64_t steps[kOperands];
    for (int i = 0; i < kOperands; i++) steps[i] = strides[i][d];
    AppendDim<kOperands>(&w, out.shape[d], steps);
  }
  return w;
}

}  // namespace keel_cpu
