// own_matmul.h: the state of a product by the own loops, shared by matmul.cc (many rows, by blocks) and
// few_rows.cc.
#pragma once

#include <atomic>

#include "plugins/cpu/matmul/loops.h"
#include "plugins/cpu/matmul/shape.h"
#include "plugins/cpu/onednn/onednn.h"

namespace keel_cpu {

// The direction of the next walk through constant panels: each second one begins with the panels that the one
// before read last, which are in a cache yet. Only a hint: launches that run at once may take the same.
class Turns {
 public:
  Turns() = default;
  Turns(const Turns&) {}
  bool Backward() const {
    const bool now = backward_.load(std::memory_order_relaxed);
    backward_.store(!now, std::memory_order_relaxed);
    return now;
  }

 private:
  mutable std::atomic<bool> backward_ = false;
};

struct OwnMatmul {
  MatmulShape s;
  const MatmulOp* op;
  Bytes constant;               // the packed panels of a constant b
  InPlace* in_place = nullptr;  // else by panels
  bool as_is = false;           // full panels are not packed
  bool copies = false;          // but copied by the first block of rows
  bool is_few = false;          // a few rows, and the same for all matrices of a constant b
  int64_t left = 0;             // elements of a, if they are converted to those of panels
  Turns turns = {};             // through the constant panels

  int64_t Panels() const { return op->Panels(s.n); }
  int64_t PanelBytes() const {
    const int64_t rows = (s.k + op->group - 1) / op->group * op->group;
    return static_cast<int64_t>(Aligned(static_cast<uint64_t>(rows * op->panel * op->packed_size)));
  }
  int64_t MatrixBytes() const { return s.k * s.n * op->size; }
  // So many panels from the first on are full and side by side in a result of one row.
  int64_t PanelsOfRow() const {
    if (s.m != 1 || s.k > op->part || op->multiply_row == nullptr) return 0;
    const int64_t full = s.n / op->panel;
    return s.b_matrices == 1 || full * op->panel == s.n ? s.b_matrices * full : 0;
  }
  uint64_t LeftBytes() const { return Aligned(static_cast<uint64_t>(left * op->left_size)); }
  bool AsIs(int64_t p) const { return as_is && (p % Panels() + 1) * op->panel <= s.n; }
  // Row `first` of panel p of a matrix of b, as it is.
  const char* InPlaceOf(const char* b, int64_t matrix, int64_t p, int64_t first) const {
    return b + matrix * MatrixBytes() + (first * s.n + p * op->panel) * op->size;
  }
  // Packs panel p, numbered through all matrices of b.
  void PackOne(const char* b, int64_t p, char* to) const {
    const Matrix x = {b + p / Panels() * MatrixBytes(), s.tb ? 1 : s.n, s.tb ? s.k : 1};
    op->pack(x, s.k, s.n, p % Panels(), to);
  }
  // Whether each thread packs the matrices that it multiplies, which are in its second-level cache then.
  bool PacksEach(int64_t threads) const {
    const int64_t batches = s.Batches();
    return constant == nullptr && batches > 1 && batches == s.b_matrices &&
           (batches % threads == 0 || batches >= 4 * threads);
  }
};

// Of w.is_few: a is its left operand as the loops take it.
keel_rc RunFewRows(const keel_call* call, const OwnMatmul& w, const char* a);
// Of w.in_place: b is read where it is.
keel_rc RunInPlace(const keel_call* call, const OwnMatmul& w, const char* a);

}  // namespace keel_cpu
