// dense.h: the functions of one matrix that Eigen computes, compiled for two levels (dense.inc). Eigen is
// included by dense_base.cc and dense_avx2.cc only.
#pragma once

#include <cstdint>

namespace keel_cpu {

enum DenseOp { kCholesky, kTriangularSolve, kSolve, kDet, kQr, kSvd, kEigh, kDenseOps };

struct DenseShape {
  int64_t m, n;  // of the first operand
  int64_t k;     // columns of the second
  bool lower, ta, unit;
};
// kNan: an operand has a NaN or an infinity, so the results are NaN. kFailed: as in `fails` of the op; `at`:
// the element of the diagonal.
enum class Outcome { kDone, kNan, kFailed, kNoMemory };
struct DenseResult {
  Outcome outcome = Outcome::kDone;
  int64_t at = 0;
};

// Matrices are row-major, of at least one row and column. All are doubles: compiling the same for floats
// takes as long again.
using DenseFunction = DenseResult (*)(const DenseShape&, const double* const* in, double* const* out);
struct DenseTable {
  DenseFunction of[kDenseOps];
};

const DenseTable& DenseBase();
const DenseTable& DenseAvx2();  // with AVX2 and FMA; x86-64 only

}  // namespace keel_cpu
