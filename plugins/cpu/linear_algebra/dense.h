// dense.h: functions of one matrix, compiled per SIMD level (dense.inc).
#pragma once

#include <cstdint>

#include "plugins/cpu/parallel/parallel.h"

namespace keel_cpu {

enum DenseOp { kCholesky, kTriangularSolve, kSolve, kDet, kQr, kSvd, kEigh, kDenseOps };

struct Stopped {};
struct DenseShape {
  int64_t m, n;  // of the first operand
  int64_t k;     // columns of the second
  bool lower, ta, unit;
  const keel_call* call;
  // Throws Stopped if the run is to stop: the results are left incomplete.
  void Poll() const {
    if (Cancelled(call)) throw Stopped();
  }
  // The same in a long loop, after each 128th step: for small matrices a poll in each took up to 1.3 of the
  // time.
  void PollAfter(int64_t step) const {
    if (step % 128 == 127) Poll();
  }
};
// kNan: an operand has a NaN or an infinity, so the results are NaN. kFailed: as in `fails` of the op; `at`:
// the element of the diagonal.
enum class Outcome { kDone, kNan, kFailed, kNoMemory };
struct DenseResult {
  Outcome outcome = Outcome::kDone;
  int64_t at = 0;
};

// Matrices are row-major, of at least one row and column.
using DenseFunction = DenseResult (*)(const DenseShape&, const double* const* in, double* const* out);
struct DenseTable {
  DenseFunction of[kDenseOps];
};

const DenseTable& Dense(int64_t n);  // for matrices of n rows or columns

}  // namespace keel_cpu
