// int8.h: kernels of products of 8-bit integers into i32, which wraps. int8_matmul.cc has the driver.
//
// Both operands are first converted to elements that instructions multiply and add up in groups along k: four
// bytes (AVX-512 VNNI, or AVX2 and weights of int8_pairs.h; unsigned in a, signed in b) or two 16-bit
// integers. A group of a is 4 bytes; b is in panels of [groups][columns][4 bytes], padded with zeros.
#pragma once

#include <cstdint>

#include "plugins/cpu/common.h"

namespace keel_cpu {

// c = sum - a_zero * b_sum - b_zero * a_sum: a_sum of a row of a, b_sum of a column of b less its zero
// points. A step of 0: one zero point for all rows. a_sum null: b has no zero points.
struct Int8Ends {
  const int32_t *a_zero, *a_sum;  // of the first row
  int64_t a_step;
  const int32_t *b_zero, *b_sum;  // of the first column of the panel
};

// What follows a sum: sum * scale + shift, at least `low` and at most `high`. An 8-bit result is rounded, to
// even in the middle, and `zero` is added; the bounds keep it in its dtype's range.
struct Int8Result {
  keel_dt dtype = KEEL_I32;  // i32: the sum itself
  float low = 0, high = 0;
  int32_t zero = 0;
  std::vector<float> scale, shift;  // per column
  uint64_t Bytes() const { return keel_bytes(dtype, 1); }
};

struct Int8Panel {
  const char* data;
  int64_t groups, extra;  // extra: 0, or the room for extra groups (int8_pairs.h)
};

struct Int8Kernel {
  int64_t group, panel;  // elements of a group; columns of a panel
  bool bytes;            // else 16-bit integers
  // Converts n elements of a row to whole groups and returns their sum. is_signed: from i8, else from u8.
  int32_t (*left)(const void* a, bool is_signed, int64_t n, void* to);
  // Packs columns [first, first + panel) of b, a row-major matrix [k, n], with `shift` added to each element,
  // and writes the sums of the columns.
  void (*pack)(const void* b, bool is_signed, int32_t shift, int64_t k, int64_t n, int64_t first, void* panel,
               int32_t* sums);
  // Writes `columns` columns of m rows of c, `step` apart; the rows of a are `row` bytes apart.
  void (*multiply)(const void* a, int64_t row, const Int8Panel& panel, int64_t m, int64_t columns,
                   const Int8Ends& ends, int32_t* c, int64_t step);
  // Rows of sums, `step` apart, to rows of results, `to_step` apart; `first`: the column of the first.
  void (*finish)(const int32_t* sums, int64_t step, int64_t m, int64_t columns, const Int8Result& result,
                 int64_t first, void* to, int64_t to_step);
};

// The best for the class of processor that code is selected for; and the best in pairs of 16-bit integers.
const Int8Kernel& Int8Loops();
const Int8Kernel& Int16Loops();
// For weights of int8_pairs.h; null if the class has no such kernel, or a better one.
const Int8Kernel* Int8PairLoops();

// Operands of matmul_integer that may be absent.
enum Int8Operand { kAZero = 2, kBZero = 3 };
inline int32_t ZeroInCall(const keel_call* call, int operand, bool is_signed) {
  return is_signed ? In<int8_t>(call, operand)[0] : In<uint8_t>(call, operand)[0];
}

// Prepares a matmul_integer whose sums become such results.
void KeepInt8(const Node& node, Int8Result result, keel_launch* launch);

}  // namespace keel_cpu
