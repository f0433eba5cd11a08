// form.h: a scan of the form of recurrent nets: each step multiplies rows of the carried values, of entries
// or of values just computed by constant weights, and computes elementwise ops on the sums. All values of a
// step are [rows, units], or broadcast to that.
//
// A gate's products and biases are added in the loops of the products (Sum). The other ops are maps,
// one for each stage: products of a stage read values of the stages before it.
#pragma once

#include <deque>

#include "plugins/cpu/common.h"

namespace keel_cpu {

// A value of a step: an operand of the scan or its entry of the step, a constant, a sum or an op's result.
struct StepValue {
  enum Kind : uint8_t { kCarry, kInvariant, kEntry, kConstant, kPart, kSum, kComputed } kind;
  keel_dt dtype;
  Dims dims;
  const char* data = nullptr;     // kConstant
  uint32_t number = 0;            // of the operand; kPart: of the product; kSum: of the sum
  int64_t first = 0, column = 0;  // kPart: of its matrices and columns; else `first` is an element
  uint32_t stage = 0;
  uint32_t uses = 0;              // by elementwise ops, sums, products and results
  uint32_t op = KEEL_NO_VALUE;    // kComputed
  bool is_kept = false;           // kComputed: a later stage, a product or a result reads it
  uint32_t rows = KEEL_NO_VALUE;  // values with the same number here have as many rows in any run
};

// left [rows, depth] by constant matrices.
struct StepProduct {
  uint32_t left, stage;
  const float* weights;
  int64_t depth;                // rows of each matrix
  int64_t matrix, row, column;  // elements from one to the next
};

struct SumPart {
  uint32_t product;
  int64_t matrix, column;  // its first column
};
// Units of products and values that are the same in each step, added up.
struct Sum {
  std::vector<SumPart> parts;
  std::vector<uint32_t> starts;
  uint32_t stage = 0;
};

struct StepOp {
  const keel_node* node;
  std::vector<uint32_t> in;
  uint32_t out, stage = 0;
};

struct RecurrentForm {
  bool is_scan = true;  // or a call of one step, whose operands are entries
  Dims state;           // [rows, units]
  int64_t units = 0;
  uint32_t rows = 0;  // StepValue::rows
  uint32_t carry = 0, invariants = 0, stages = 0;
  std::deque<StepValue> values;
  std::vector<StepProduct> products;
  std::vector<Sum> sums;
  std::vector<StepOp> ops;        // in order
  std::vector<uint32_t> results;  // the next carried values, then the stacked ones
};

// Of a scan, or of a call of one step. False: the body is of another form. Dims may be -1, except dims of
// weights; then rows are equal only where ops require it, as libkeel runs no body whose launch is declined.
bool ReadRecurrent(const Node& node, RecurrentForm* form);
// Its second part: sums and stages. False: ops of two stages read a sum, or a value has other dims.
bool MakeStages(const Node& node, RecurrentForm* form);

}  // namespace keel_cpu
